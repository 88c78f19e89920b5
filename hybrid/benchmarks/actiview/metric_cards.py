"""Definitions of ActiView's metrics (`hybrid benchmarks show actiview`)."""

from __future__ import annotations

from hybrid.benchmarks.card import MetricCard

RIGHT = "right answers / questions"
ASKED = "questions; with --setting mode=average each of the five ways of asking is one more"
SHOWN = "questions whose clue views are known and were not given"
RECALL = "sum of |views shown that hold clues| / sum of |views that hold clues|"
EQUATION = "paper, appendix E, equation 1; Table 13, whose cells are shares of all 859 clue views"

METRICS = (
    MetricCard("accuracy.all", RIGHT, ASKED, "paper, Tables 2 and 7; the released cal_acc says what is right"),
    MetricCard(
        "accuracy.type_<I|II|III>",
        f"{RIGHT} of the type",
        ASKED,
        "paper, Tables 8 to 12 (AVG of a type, over questions)",
    ),
    MetricCard(
        "accuracy.<geo_loc|orientation|daily_loc|object_attr|object_rel|counting|event_multi|event_single>",
        f"{RIGHT} of the category",
        ASKED,
        "paper, Tables 8 to 12",
    ),
    MetricCard(
        "accuracy.<full|single_R|single_E|single_M|single_H|zoom|shift_R|shift_E|shift_M|shift_H|mixed|commonsense|guess>",
        f"{RIGHT} asked in this way",
        "questions",
        "paper, the columns of Tables 2, 3 and 7; Table 5 for commonsense and guess",
        "R, E, M and H: the first view is random, easy, medium, hard.",
    ),
    MetricCard(
        "accuracy_oracle_views.<part>",
        "as accuracy.<part>, the views with clues given instead of chosen",
        ASKED,
        "paper, Table 13 (ACC_GT); with --setting views=oracle",
    ),
    MetricCard(
        "accuracy_any_view_uses_gold.<part>",
        "as accuracy.<part>, right where the answer to any one view is right",
        ASKED,
        "the authors' rule for single-image models, which looks at the answer key; with --setting images=any_view",
    ),
    MetricCard(
        "model_avg",
        "mean of the accuracies of zoom, shift_R, shift_E, shift_M and shift_H",
        ASKED,
        "paper, Table 2 (Model AVG)",
    ),
    MetricCard(
        "model_avg_any_view_uses_gold",
        "as model_avg, with --setting images=any_view",
        ASKED,
        "paper, Table 2 (Model AVG); the any-view rule of accuracy_any_view_uses_gold",
    ),
    MetricCard("recall_zoom", RECALL, SHOWN, EQUATION),
    MetricCard(
        "recall_shift", RECALL, SHOWN, EQUATION, "Both count views from 1; the printed columns are recall_shift_paper."
    ),
    MetricCard(
        "recall_shift_paper",
        "sum of |{v - 1 : v shown} that hold clues| / sum of |views that hold clues|",
        SHOWN,
        "paper, Table 13, columns of shifting: views counted from 0 are compared with clues counted from 1",
        "It reproduces the table: four of four views shown give 641 / 859 = 0.7462. It is no measure of recall.",
    ),
    MetricCard("recall_mixed", RECALL, SHOWN, "paper, appendix E, equation 1, for the mixed pipeline"),
    MetricCard(
        "views.mean",
        "views shown / questions",
        "questions asked by zooming, shifting or both",
        "paper, Tables 3 and 13 (#view)",
        values="0 to the number of parts, in views",
    ),
    MetricCard(
        "zooms.mean",
        "zoom operations / questions",
        "questions asked by zooming or both",
        "paper, Table 3 (#zoom)",
        values="0 to the number of parts, in operations",
    ),
    MetricCard(
        "shifts.mean",
        "shift operations / questions",
        "questions asked by shifting or both",
        "paper, Table 3 (#shift)",
        values="0 to the number of parts, in operations",
    ),
    MetricCard(
        "declined.mean",
        'questions answered with "None" / questions',
        "questions asked with --setting mode=commonsense",
        "ours, of the paper's text-only evaluation (appendix C), which lets the model say so",
    ),
    MetricCard("chance", "sum of 1 / number of options / questions", ASKED, "ours: the mean score of a uniform guess"),
)
