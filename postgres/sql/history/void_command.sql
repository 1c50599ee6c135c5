{include history/void_command history}
