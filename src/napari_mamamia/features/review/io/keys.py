"""Readers' Ed25519 keys; a private key is stored encrypted on the reader's own computer.

A key file is JSON: the public key, and the private key encrypted with ChaCha20-Poly1305 under a key
derived from the passphrase with scrypt. A forgotten passphrase cannot be recovered; the reader then
creates a new key, which a lead countersigns.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import CaseError, FormatError, Remedy, SaveConflictError
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.workspace.workspace import file_name

_VERSION: Final = 1
_LEAD_KEYS: Final = "lead-keys"
_SALT: Final = 16
_NONCE: Final = 12
_COST: Final = 1 << 15
"""The scrypt cost parameter n; with r = 8 and p = 3, it needs 32 MB and about 0.3 s.

Source: OWASP, Password Storage Cheat Sheet, which lists these parameters.
"""
_LANES: Final = 3
_BLOCK: Final = 8
_MEMORY: Final = 64 << 20
_MOST_BYTES: Final = 1 << 16
_SHORTEST: Final = 8
_BOUND: Final = b"napari-mamamia review key 1"


class WrongPassphraseError(CaseError):
    """Error raised if the passphrase does not decrypt the key."""


def key_path(home: Path, study_id: str, reader: str) -> Path:
    """Return the path of a reader's key for a study on this computer."""
    return home / file_name(study_id, "a study's id") / f"{file_name(reader, 'a reader')}.key.json"


def make_lead_key(home: Path, passphrase: str) -> str:
    """Create a lead's key before the study exists, and return the public key.

    The key stays on this computer until `adopt_lead_key` assigns it to a study whose file lists it.
    The errors are the same as in `make_key`.
    """
    return make_key(home / _LEAD_KEYS / f"{secrets.token_hex(8)}.key.json", passphrase)


def adopt_lead_key(home: Path, path: Path, publics: Iterable[str]) -> None:
    """Copy a lead's key to the study's key path if the study file lists it, unless a key exists."""
    names = set(publics)
    if not names or path.exists():
        return
    for one in sorted((home / _LEAD_KEYS).glob("*.key.json")):
        with suppress(FormatError, SaveConflictError):
            if read_public_key(one) in names:
                write_text_atomically(path, json.dumps(_read_key_file(one), indent=1) + "\n")
                path.chmod(0o600)
                return


def make_key(path: Path, passphrase: str) -> str:
    """Create a key pair, write it to a file, and return the public key (64 hexadecimal digits).

    Raises
    ------
    CaseError
        If the passphrase has fewer than 8 characters.
    SaveConflictError
        If the file exists, because a key is never replaced.
    SaveError
        If the system does not allow writing.
    """
    if len(passphrase) < _SHORTEST:
        raise CaseError(
            f"expected a passphrase of at least {_SHORTEST} characters, but found "
            f"{len(passphrase)}: choose several words that you will remember; the passphrase "
            "cannot be recovered"
        )
    ciphers, curve = _load_ciphers()
    private = curve.Ed25519PrivateKey.generate()
    public: str = private.public_key().public_bytes_raw().hex()
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    secret = ciphers.ChaCha20Poly1305(_stretch_passphrase(passphrase, salt)).encrypt(
        nonce, private.private_bytes_raw(), _BOUND + bytes.fromhex(public)
    )
    content: dict[str, Any] = {
        "mamamia_review_key": _VERSION,
        "public": public,
        "kdf": {"name": "scrypt", "n": _COST, "r": _BLOCK, "p": _LANES, "salt": salt.hex()},
        "cipher": {"name": "chacha20-poly1305", "nonce": nonce.hex(), "secret": secret.hex()},
    }
    content["sha256"] = _hash_content(content)
    write_text_atomically(path, json.dumps(content, indent=1) + "\n")
    path.chmod(0o600)
    return public


@reads("a key for review studies", "ask the study's lead for a new file")
def read_public_key(path: Path) -> str:
    """Return the public key in a key file, which needs no passphrase."""
    return str(_read_key_file(path)["public"])


@reads("a key for review studies", "ask the study's lead for a new file")
def sign_with(path: Path, passphrase: str, message: bytes) -> str:
    """Sign a message, and return the signature (128 hexadecimal digits).

    Raises
    ------
    WrongPassphraseError
        If the passphrase does not decrypt the key.
    FormatError
        If the key file is damaged.
    """
    content = _read_key_file(path)
    ciphers, curve = _load_ciphers()
    from cryptography.exceptions import InvalidTag

    kdf, cipher, public = content["kdf"], content["cipher"], str(content["public"])
    if (kdf["n"], kdf["r"], kdf["p"]) != (_COST, _BLOCK, _LANES):
        raise FormatError(
            f"expected the key at {path} to be from this version, but found different scrypt "
            "settings: update this software"
        )
    opened = ciphers.ChaCha20Poly1305(_stretch_passphrase(passphrase, bytes.fromhex(kdf["salt"])))
    try:
        secret = opened.decrypt(
            bytes.fromhex(cipher["nonce"]),
            bytes.fromhex(cipher["secret"]),
            _BOUND + bytes.fromhex(public),
        )
    except InvalidTag as error:
        raise WrongPassphraseError(
            f"the passphrase of the key {path.name} is wrong: try again. The passphrase cannot be "
            "recovered. If it is lost, create a new key and ask the lead to countersign it; "
            "earlier signatures remain valid",
            remedies=(Remedy(command="review key new"),),
        ) from error
    return str(curve.Ed25519PrivateKey.from_private_bytes(secret).sign(message).hex())


def set_key_aside(path: Path) -> Path:
    """Rename a key file whose passphrase was lost, and return the new path of the file."""
    number = 1
    while (aside := path.with_name(f"{path.name}.set-aside-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


@reads("a passphrase on its first line", "write the passphrase there")
def read_passphrase(path: Path) -> str:
    """Return the first line of a passphrase file, without the line ending."""
    with open_plain(path) as stream:
        text = stream.read(_MOST_BYTES).decode("utf-8-sig")
    return text.splitlines()[0] if text else ""


def signature_fits(key: str, signature: str, message: bytes) -> bool:
    """Return whether a signature is valid for a message and a public key."""
    _, curve = _load_ciphers()
    from cryptography.exceptions import InvalidSignature

    try:
        public = curve.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), message)
    except (ValueError, InvalidSignature):
        return False
    return True


@reads("a key for review studies", "restore the file from a copy, or create a new key")
def require_whole_key(path: Path) -> str:
    """Check the parts of a key file that need no passphrase, and return the public key.

    Raises
    ------
    FormatError
        If the file was changed.
    """
    content = _read_key_file(path)
    if content.get("sha256") != _hash_content(content):
        raise FormatError(
            f"the content of the key file {path} was changed: restore the file from a copy, or "
            "create a new key"
        )
    return str(content["public"])


def _hash_content(content: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(canonical(rest)).hexdigest()


def _read_key_file(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path, _MOST_BYTES)
    except FileNotFoundError as error:
        raise FormatError(
            f"expected your key at {path}, but there is none on this computer: create a key, or "
            "sign on the computer where you created your key",
            remedies=(Remedy(command="review key"),),
        ) from error
    if not isinstance(content, dict) or content.get("mamamia_review_key") != _VERSION:
        raise FormatError(
            f"expected a key for review studies at {path}, but found something else: create a new "
            "key",
            remedies=(Remedy(command="review key new"),),
        )
    return content


def _stretch_passphrase(passphrase: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        passphrase.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES, maxmem=_MEMORY, dklen=32
    )


def _load_ciphers() -> tuple[Any, Any]:
    """Import the cryptography modules on demand, because the import takes 40 ms."""
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.ciphers import aead

    return aead, ed25519
