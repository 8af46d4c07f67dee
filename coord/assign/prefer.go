package assign

// prefer exchanges resources that move, or had no owner, between nodes of one priority so that more of them are where they
// should be. Counts and loads stay as they are, and nothing moves that did not move anyway.
func prefer(p *Problem, plan []int32) {
	wanted := false
	for i := range p.Nodes {
		wanted = wanted || p.Nodes[i].Prefer != nil
	}
	if !wanted {
		return
	}
	loose := make([][]int32, len(p.Nodes)) // by node: what may be exchanged
	for r, o := range plan {
		if o != Nobody && p.owner(r) != o {
			loose[o] = append(loose[o], int32(r))
		}
	}
	for r, a := range plan {
		if a == Nobody || p.owner(r) == a || has(p.Nodes[a].Prefer, r) {
			continue
		}
		for b := range p.Nodes {
			if p.Nodes[b].Priority == p.Nodes[a].Priority && has(p.Nodes[b].Prefer, r) && p.exchange(plan, loose, int32(r), int32(b)) {
				break
			}
		}
	}
}

// exchange gives r to b for a loose resource of b that loses nothing by it.
func (p *Problem) exchange(plan []int32, loose [][]int32, r, b int32) bool {
	a := plan[r]
	if !p.Nodes[b].may(int(r)) {
		return false
	}
	for i, s := range loose[b] {
		if plan[s] != b || p.load(int(s)) != p.load(int(r)) || !p.Nodes[a].may(int(s)) {
			continue
		}
		if has(p.Nodes[b].Prefer, int(s)) && !has(p.Nodes[a].Prefer, int(s)) {
			continue
		}
		plan[r], plan[s] = b, a
		loose[b][i] = r
		for j, x := range loose[a] {
			if x == r {
				loose[a][j] = s
			}
		}
		return true
	}
	return false
}
