// Package archtest checks the module against its architecture rules.
//
// The rules cover the imports between packages, the shard and workspace conditions of every
// SQL statement, and the statements of the docs about tests and dependencies. Each rule is a
// table or a short function, with a test that reads the module.
//
// The import rules are in rules_test.go and serve as documentation. A package without a rule
// fails the test, so that each new package is placed deliberately. The SQL rules are in
// sqlrules_checks_test.go, with the excepted tables and verbs and a reason for each.
//
// The checks return violations as values, so that the tests can also run them on planted
// mistakes:
//
//	m, err := ReadModule(os.DirFS(root))
//	for _, v := range Arrows(m, Rules) { … }
//
// All code is in test files, because no program needs it.
//
// Most checks read only the syntax, with go/parser and a small SQL parser, so that files behind
// build tags are checked too.
package archtest
