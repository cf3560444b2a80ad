// Diagrams of loops. Texts of definitions cannot leave their labels.

import fc from 'fast-check';
import { expect } from 'vitest';
import { mermaidOf } from '../../src/loops/plan/mermaid/mermaid.js';
import { labelOf } from '../../src/loops/plan/mermaid/mermaid-text.js';
import type { LoopDef } from '../../src/protocol/loop.js';
import { hostileText, planDefinition } from '../support/random-plan-documents.js';
import { workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';

const LABEL = String.raw`(?:[\p{L}\p{M}\p{N} _.,]|(?<=[\p{L}\p{N}])-(?=[\p{L}\p{N}])|#\d+;)+`;
const NODE = String.raw`n\d+(?:\["${LABEL}"\]|\{"${LABEL}"\}|\(\["${LABEL}"\]\)|\[\["${LABEL}"\]\])`;
const EDGE = String.raw`n\d+ -->(?:\|"${LABEL}"\|)? n\d+`;
const flowchartLine = new RegExp(`^ +(?:${NODE}|${EDGE}|subgraph n\\d+\\["${LABEL}"\\]|end)$`, 'u');
const STATE = String.raw`s\d+|\[\*\]`;
const stateLine = new RegExp(`^ {2}(?:state "${LABEL}" as s\\d+|(?:${STATE}) --> (?:${STATE})(?: : ${LABEL})?)$`, 'u');

/** Returns the lines that are no line of a diagram, and ids that are used but not declared. */
function faultsOf(diagram: string): string[] {
  const [first, ...lines] = diagram.trimEnd().split('\n');
  const pattern = first === 'flowchart TD' ? flowchartLine : stateLine;
  const declared = new Set(
    lines.flatMap((line) => /^ *(?:subgraph )?(n\d+)[[{(]/.exec(line)?.[1] ?? / as (s\d+)$/.exec(line)?.[1] ?? []),
  );
  const used = lines.flatMap((line) => [...line.matchAll(/\b([ns]\d+)(?= -->|$| : )/g)].map(([, id = '']) => id));
  const groups = lines.filter((line) => /^ +subgraph /.test(line)).length;
  const ends = lines.filter((line) => /^ +end$/.test(line)).length;
  return [
    ...(first === 'flowchart TD' || first === 'stateDiagram-v2' ? [] : [String(first)]),
    ...lines.filter((line) => !pattern.test(line)),
    ...used.filter((id) => !declared.has(id)),
    ...(groups === ends ? [] : [`${groups} groups, ${ends} ends`]),
  ];
}

verifies('plan.mermaid', 'every line of a diagram is a line of Mermaid, whatever the texts of the plan', () => {
  const property = fc.property(planDefinition, (definition) => {
    expect(faultsOf(mermaidOf(definition as LoopDef))).toEqual([]);
  });
  fc.assert(property, { numRuns: 300 });
});

verifies('plan.mermaid', 'a label contains its text, on one line', () => {
  const decode = (label: string): string =>
    label.replace(/#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
  const property = fc.property(hostileText, (text) => {
    const line = text
      .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
      .replace(/\p{Surrogate}/gu, '\ufffd')
      .trim();
    fc.pre(line !== '' && Array.from(line).length <= 80);
    expect(decode(labelOf(text))).toBe(line);
  });
  fc.assert(property, { numRuns: 500 });
  expect(Array.from(decode(labelOf('x'.repeat(200))))).toHaveLength(80);
});

verifies('plan.mermaid', 'the faults of a diagram are noticed', () => {
  const definition = { id: 'a', kind: 'composite', composite: { plan: { steps: [{ loop: 'b' }] } } };
  const diagram = mermaidOf(definition as unknown as LoopDef);
  expect(faultsOf(diagram)).toEqual([]);
  for (const broken of [
    diagram.replace('"b"', '"b" --> "c"'),
    diagram.replace('end', 'en"d'),
    `${diagram}  n1 --> n99\n`,
    `${diagram}  click n1 "x"\n`,
    diagram.replace('flowchart TD', '%%{init: {}}%%'),
  ])
    expect(faultsOf(broken)).not.toEqual([]);
});

verifies('plan.mermaid', 'agents, LSEM steps, prompts and plans of a model have a diagram', () => {
  const composites = [
    { agent: { backend: { id: 'mock' }, tools: ['find "it"', 'b'], handoffs: ['other'] } },
    { steps: [{ loopId: 'a', inputMapping: '$', outputBinding: 'x-->' }] },
    { plan: { llm: { strategy: 'simple', model: 'm' } } },
  ];
  const [agent = '', steps, driven] = composites.map((composite) => {
    const diagram = mermaidOf({ id: 'l', kind: 'composite', composite } as unknown as LoopDef);
    expect(faultsOf(diagram)).toEqual([]);
    return diagram;
  });
  expect(agent).toContain('"ask mock"');
  expect(agent.match(/\|"act"\|/g)).toHaveLength(2);
  expect(steps).toContain('[["a #8594; x#45;#45;#62;"]]');
  expect(driven).toContain('"ask m"');
  expect(faultsOf(mermaidOf({ id: 'p', kind: 'prompt' } as unknown as LoopDef))).toEqual([]);
});

const MACHINE = `[[states]]
name = "analyzing"
action = "analyze --health"
transitions = [{ condition = "has_errors", next = "fixing" }, { next = "done" }]

[[states]]
name = "fixing"
action = "edit {file} 'fix issues'"
transitions = [{ next = "analyzing" }]
`;

verifies('plan.mermaid', 'show --mermaid prints the states of a workflow', async () => {
  const project = workflowProject({ 'machine.toml': MACHINE });
  const shown = await project.run(['show', 'loops/machine.toml', '--mermaid']);
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toBe(`stateDiagram-v2
  state "analyzing#58; analyze #45;#45;health" as s1
  state "fixing#58; edit #123;file#125; #39;fix issues#39;" as s2
  [*] --> s1
  s1 --> s2 : has_errors
  s1 --> [*]
  s2 --> s1
`);
  expect(await project.json(['show', 'machine', '--mermaid'])).toEqual({ mermaid: shown.stdout });
  expect((await project.run(['show', 'nothing', '--mermaid'])).code).toBe(1);
});
