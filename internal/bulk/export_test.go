package bulk

// Serve is serve, for tests of a member that is acted on late.
var Serve = serve
