{include history/voided event}
