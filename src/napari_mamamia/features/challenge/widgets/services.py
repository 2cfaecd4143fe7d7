"""What the window calls for this feature's page; tests pass fakes of single ones."""

from napari_mamamia.features.challenge.services.rank.board import open_board
from napari_mamamia.features.challenge.services.rank.team_masks import (
    find_team_folder,
    find_team_mask,
)
from napari_mamamia.widgets.base.service_record import Services, ServiceSet


class RankServices(ServiceSet):
    """The services of the leaderboard; a field left out is the real one."""

    open_board = staticmethod(open_board)
    find_team_folder = staticmethod(find_team_folder)
    find_team_mask = staticmethod(find_team_mask)


def ranks_services(services: Services) -> RankServices:
    """Return this feature's services of a window."""
    return services.of_feature("ranks", RankServices)
