/** Draws definitions as Mermaid diagrams: plans, LSEM steps and agents. Pure. */
import type { AgentSpec, LoopDef, StepsSpec } from '../../../protocol/loop.js';
import type { PlanSpec, PlanStep } from '../../../protocol/plan.js';
import { Flowchart } from './mermaid-text.js';
import { stateDiagram } from './state-diagram.js';
import { describeCall } from './step-label.js';

/** The end of a piece of a flowchart, from which edges lead on, with the label of its next edge. */
interface Exit {
  readonly from: string;
  readonly label?: string;
}

/**
 * Returns a Mermaid diagram of a definition: the states of a plan as `stateDiagram-v2`, anything else as a flowchart.
 *
 * @example
 * mermaidOf(definition); // 'flowchart TD\n  n1(["begin"])\n…'
 */
export function mermaidOf({ id, kind, composite }: LoopDef): string {
  if (composite?.plan?.states !== undefined) return stateDiagram(composite.plan);
  const chart = new StepChart();
  if (composite?.plan !== undefined) chart.plan(composite.plan);
  else if (composite?.agent !== undefined) chart.agent(composite.agent);
  else if (composite?.steps !== undefined) chart.composite(composite);
  else chart.single(`${kind} ${id}`);
  return chart.flowchart.toString();
}

class StepChart {
  readonly flowchart = new Flowchart();

  single(label: string): void {
    this.between((entry) => this.joined(entry, this.flowchart.node(label, 'call')));
  }

  composite({ steps }: StepsSpec): void {
    this.between((entry) =>
      steps.reduce((exits, { loopId, outputBinding }) => {
        const label = outputBinding === undefined ? loopId : `${loopId} → ${outputBinding}`;
        return this.joined(exits, this.flowchart.node(label, 'call'));
      }, entry),
    );
  }

  /** An agent: ask the model, run the tools that it chose, and again, until it answers. */
  agent({ tools, handoffs = [], backend }: AgentSpec): void {
    const { flowchart } = this;
    this.between((entry) => {
      const ask = flowchart.node(`ask ${backend.model ?? backend.id}`);
      this.joined(entry, ask);
      const choice = flowchart.node('tool calls?', 'choice');
      flowchart.edge(ask, choice);
      for (const tool of tools) {
        const act = flowchart.node(tool, 'call');
        flowchart.edge(choice, act, 'act');
        flowchart.edge(act, ask);
      }
      const taken = handoffs.map((agent): Exit => {
        const next = flowchart.node(agent, 'call');
        flowchart.edge(choice, next, 'handoff');
        return { from: next };
      });
      return [{ from: choice, label: 'answer' }, ...taken];
    });
  }

  plan({ steps, llm }: PlanSpec): void {
    this.between((entry) => {
      if (steps !== undefined) return this.steps(steps, entry);
      const ask = this.flowchart.node(`ask ${llm?.model ?? llm?.provider ?? 'the model'}`);
      const done = this.flowchart.node('done?', 'choice');
      this.joined(entry, ask);
      const act = this.flowchart.node('run the chosen actions');
      this.flowchart.edge(ask, done);
      this.flowchart.edge(done, act, 'no');
      this.flowchart.edge(act, ask);
      return [{ from: done, label: 'yes' }];
    });
  }

  private between(build: (entry: readonly Exit[]) => readonly Exit[]): void {
    const begin = this.flowchart.node('begin', 'round');
    const exits = build([{ from: begin }]);
    this.joined(exits, this.flowchart.node('end', 'round'));
  }

  /** Leads the exits to a node, and returns the exit of that node. */
  private joined(exits: readonly Exit[], node: string): readonly Exit[] {
    for (const { from, label } of exits) this.flowchart.edge(from, node, label);
    return [{ from: node }];
  }

  private steps(steps: readonly PlanStep[], entry: readonly Exit[]): readonly Exit[] {
    return steps.reduce((exits, step) => this.step(step, exits), entry);
  }

  private step(step: PlanStep, entry: readonly Exit[]): readonly Exit[] {
    const { condition } = step;
    if (typeof condition !== 'string') return this.unconditional(step, entry);
    const choice = this.flowchart.node(condition, 'choice');
    this.joined(entry, choice);
    const exits = this.unconditional(step, [{ from: choice, label: 'yes' }]);
    return [...exits, { from: choice, label: 'no' }];
  }

  private unconditional(step: PlanStep, entry: readonly Exit[]): readonly Exit[] {
    if (!('type' in step)) return this.joined(entry, this.flowchart.node(describeCall(step), 'call'));
    const block = step as Extract<PlanStep, { type: string }>;
    const label = block.name === undefined ? block.type : `${block.type} ${block.name}`;
    if (block.type === 'wait') return this.joined(entry, this.flowchart.node(`wait ${waitLabel(block.wait)}`, 'round'));
    if (block.type === 'branch') return this.branch(block.branch, label, entry);
    if (block.type === 'fanout') return this.flowchart.group(label, () => this.fanOut(block.fanout, entry));
    if (block.type === 'repeat') return this.flowchart.group(label, () => this.repeat(block.repeat, entry));
    if (block.type === 'each')
      return this.flowchart.group(label, () => this.loop(`next of ${block.each.items}`, block.each.steps, entry));
    const inner = block.type === 'sequence' ? block.sequence.steps : block.scope.steps;
    return this.flowchart.group(label, () => this.steps(inner, entry));
  }

  private branch(
    { cases, else: otherwise }: Extract<PlanStep, { type: 'branch' }>['branch'],
    label: string,
    entry: readonly Exit[],
  ): readonly Exit[] {
    return this.flowchart.group(label, () => {
      let next = entry;
      const exits: Exit[] = [];
      for (const { condition, steps } of cases) {
        const choice = this.flowchart.node(condition, 'choice');
        this.joined(next, choice);
        exits.push(...this.steps(steps, [{ from: choice, label: 'yes' }]));
        next = [{ from: choice, label: 'no' }];
      }
      return [...exits, ...(otherwise === undefined ? next : this.steps(otherwise, next))];
    });
  }

  private repeat(repeat: Extract<PlanStep, { type: 'repeat' }>['repeat'], entry: readonly Exit[]): readonly Exit[] {
    const { steps, until, while: condition, max } = repeat;
    const limit = max === undefined ? '' : `, at most ${max} times`;
    if (until === undefined) return this.loop(`${condition ?? 'again'}${limit}`, steps, entry);
    const start = this.flowchart.node(
      condition === undefined ? `repeat${limit}` : `${condition}${limit}`,
      condition === undefined ? 'box' : 'choice',
    );
    this.joined(entry, start);
    const exits = this.steps(steps, [condition === undefined ? { from: start } : { from: start, label: 'yes' }]);
    const end = this.flowchart.node(until, 'choice');
    this.joined(exits, end);
    this.flowchart.edge(end, start, 'no');
    return [{ from: end, label: 'yes' }, ...(condition === undefined ? [] : [{ from: start, label: 'no' }])];
  }

  /** A choice, the steps that follow if it holds, and the way back. */
  private loop(condition: string, steps: readonly PlanStep[], entry: readonly Exit[]): readonly Exit[] {
    const choice = this.flowchart.node(condition, 'choice');
    this.joined(entry, choice);
    this.joined(this.steps(steps, [{ from: choice, label: 'yes' }]), choice);
    return [{ from: choice, label: 'no' }];
  }

  private fanOut(
    { items, steps = [], branches = [], join = 'all' }: Extract<PlanStep, { type: 'fanout' }>['fanout'],
    entry: readonly Exit[],
  ): readonly Exit[] {
    const fork = this.flowchart.node(items === undefined ? 'all branches' : `for all of ${items}`);
    this.joined(entry, fork);
    const exits =
      items === undefined
        ? branches.flatMap(({ name, steps: inner }, index) =>
            this.steps(inner, [{ from: fork, label: name ?? String(index) }]),
          )
        : this.steps(steps, [{ from: fork }]);
    return this.joined(exits, this.flowchart.node(typeof join === 'string' ? join : `${join.quorum} of them`));
  }
}

function waitLabel(wait: Extract<PlanStep, { type: 'wait' }>['wait']): string {
  if (wait.for !== undefined) return typeof wait.for === 'number' ? `${wait.for} ms` : wait.for;
  return wait.until === undefined ? `for the signal ${wait.signal ?? ''}` : `until ${wait.until}`;
}
