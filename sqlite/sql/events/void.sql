{include history/voided holdfast_event}
