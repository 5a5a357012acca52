"""All claims about looped networks: importing it makes the checker know them."""

import onelayer_checker.looped.identified
import onelayer_checker.looped.limits
import onelayer_checker.looped.risks
import onelayer_checker.looped.rounding
import onelayer_checker.looped.smoothers  # noqa: F401
from onelayer_checker.looped.judge import read_loop as read_loop
