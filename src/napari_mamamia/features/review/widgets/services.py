"""Service functions of the Review page, which tests can replace one by one."""

from napari_mamamia.features.review.services.client import (
    describe_agreement,
    list_people,
    load_quality_status,
    open_client,
)
from napari_mamamia.features.review.services.judging import (
    accept_case,
    decide_dispute,
    fuse_dispute,
    leave_out,
    list_decided,
    list_differences,
    list_lesions,
    load_first_snapshot,
    open_dispute,
    reopen_case,
    set_down,
)
from napari_mamamia.features.review.services.plan_study import (
    freeze_with_keys,
    list_case_ids,
    plan_study,
)
from napari_mamamia.features.review.services.signing import (
    countersign_key,
    end_key,
    load_signing_status,
    make_own_key,
    sign_things,
)
from napari_mamamia.widgets.base.service_record import Services, ServiceSet


class ReviewServices(ServiceSet):
    """The service functions of the Review page; the default of each field is the real function."""

    list_people = staticmethod(list_people)
    open_client = staticmethod(open_client)
    plan_study = staticmethod(plan_study)
    list_case_ids = staticmethod(list_case_ids)
    freeze_with_keys = staticmethod(freeze_with_keys)
    load_first_snapshot = staticmethod(load_first_snapshot)
    open_dispute = staticmethod(open_dispute)
    list_differences = staticmethod(list_differences)
    list_lesions = staticmethod(list_lesions)
    fuse_dispute = staticmethod(fuse_dispute)
    decide_dispute = staticmethod(decide_dispute)
    set_down = staticmethod(set_down)
    leave_out = staticmethod(leave_out)
    accept_case = staticmethod(accept_case)
    reopen_case = staticmethod(reopen_case)
    list_decided = staticmethod(list_decided)
    load_signing_status = staticmethod(load_signing_status)
    make_own_key = staticmethod(make_own_key)
    sign_things = staticmethod(sign_things)
    countersign_key = staticmethod(countersign_key)
    end_key = staticmethod(end_key)
    load_quality_status = staticmethod(load_quality_status)
    describe_agreement = staticmethod(describe_agreement)


def review_services(services: Services) -> ReviewServices:
    """Return the review services of a window."""
    return services.of_feature("review", ReviewServices)
