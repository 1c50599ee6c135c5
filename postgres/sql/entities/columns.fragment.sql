-- The columns of an entity that are returned (entities/result_columns), of {1}.
{1}.status, {1}.version, {1}.data, {1}.created_at, {1}.updated_at, {1}.phase, {1}.operation, {1}.step, {1}.requester, {1}.revert,
{1}.input, {1}.holder, {1}.epoch, {1}.until, {1}.claimed_at, {1}.begun, {1}.failures, {1}.deaths, {1}.error, {1}.outcome, {1}.manual
