{include history/void_command holdfast_event}
