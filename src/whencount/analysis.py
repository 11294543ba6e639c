"""The analysis of anyone's rows: shares with intervals, hypotheses, predictors (study, 5 to 8)."""
