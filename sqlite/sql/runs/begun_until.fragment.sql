-- The end of the lease of the step that begins at the time {1}.
CASE WHEN :begin IS NOT NULL AND :held = 1 THEN {1} + min(:lease, :timeout) ELSE 0 END
