{include history/void_command event}
