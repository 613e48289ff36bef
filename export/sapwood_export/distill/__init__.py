"""Makes a draft for a target from the target alone: data, training, a draft folder."""
