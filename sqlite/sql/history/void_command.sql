{include history/void_command holdfast_history}
