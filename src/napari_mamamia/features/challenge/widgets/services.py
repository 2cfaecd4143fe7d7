"""Service functions of the leaderboard, which tests can replace one by one."""

from napari_mamamia.features.challenge.services.rank.board import open_board
from napari_mamamia.features.challenge.services.rank.making import (
    list_score_tables,
    make_ranking,
)
from napari_mamamia.features.challenge.services.rank.team_masks import (
    find_team_folder,
    find_team_mask,
)
from napari_mamamia.widgets.base.service_record import Services, ServiceSet


class RankServices(ServiceSet):
    """The service functions of the leaderboard; the default of each field is the real function."""

    open_board = staticmethod(open_board)
    list_score_tables = staticmethod(list_score_tables)
    make_ranking = staticmethod(make_ranking)
    find_team_folder = staticmethod(find_team_folder)
    find_team_mask = staticmethod(find_team_mask)


def ranks_services(services: Services) -> RankServices:
    """Return the leaderboard services of a window."""
    return services.of_feature("ranks", RankServices)
