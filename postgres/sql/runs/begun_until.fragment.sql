-- The end of the lease of the step that begins; {1} is the prefix of an argument name.
CASE WHEN {1}begin IS NOT NULL AND {1}held = 1 THEN ok.now + least({1}lease, {1}timeout)::float8 * interval '1 ms' ELSE 'epoch' END
