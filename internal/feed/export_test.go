package feed

// Pace is the shortest time between two rounds while no reader waits.
const Pace = pace
