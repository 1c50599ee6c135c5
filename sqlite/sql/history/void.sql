{include history/voided holdfast_history}
