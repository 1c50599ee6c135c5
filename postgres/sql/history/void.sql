{include history/voided history}
