package demo

import "fmt"

// Place is where the demo runs. It appears in what the demo suggests to try.
type Place struct {
	URL         string // of the server
	NoDashboard bool
	Program     string // the command that runs this program
	DB          string // the database, for commands; "" if a command must not show it
}

func (p Place) dashboard() string {
	if p.NoDashboard {
		return "off"
	}
	return p.URL + "/"
}

// suggest prints what to try while the company keeps working. The pages show the workspace of the company.
func (d *Demo) suggest(at Place) {
	d.printf("The company keeps working until Ctrl-C. Try:\n\n")
	try := func(what, how string) { d.printf("  %-12s %s\n", what, how) }
	if !at.NoDashboard {
		try("unblock", at.URL+"/  (the payment, in the inbox)")
		try("approve", at.URL+"/approvals  (the onboarding)")
		try("see a race", fmt.Sprintf("%s/lifecycles/invoice/%s?view=race", at.URL, d.atHome(0)))
	}
	try("who lost", fmt.Sprintf("%s races --url %s", at.Program, at.URL))
	if at.DB != "" {
		try("check it all", fmt.Sprintf("%s check --db %s", at.Program, at.DB))
	}
	d.printf("\n")
}
