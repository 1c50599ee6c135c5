module github.com/holdfast-go/holdfast/bench/peers/peer

go 1.26.0
