// Package archtest holds the house to its plan.
//
// Three things are agreed on paper and easily lost in code: which package may
// import which, what every SQL statement must say of shard and workspace, and
// what the documents claim about tests and dependencies. Each is a table or a
// short rule here, and a test that reads the module as it stands.
//
// The arrows are in rules_test.go, to be read as documentation: a package that has
// no line there fails the test, so that a new one is placed on purpose. The
// rules on SQL are in sqlrules_checks_test.go, with the tables and verbs that are excepted
// and the reason of each.
//
// The checks return each violation as a value, so that the tests also run them
// on planted mistakes and see them caught:
//
//	m, err := ReadModule(os.DirFS(root))
//	for _, v := range Arrows(m, Rules) { … }
//
// All of it is in test files: no program needs it.
//
// Only the syntax is read, by go/parser and by a small reader of SQL: nothing is
// compiled, so files behind build tags are held to the same rules.
package archtest
