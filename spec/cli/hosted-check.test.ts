// `rondo check` and hosted loop files: good and bad ones, given or found beside the definitions.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

interface Report {
  readonly ok: boolean;
  readonly files: readonly {
    readonly file: string;
    readonly ok: boolean;
    readonly errors: readonly { readonly path?: string; readonly line?: number; readonly reason: string }[];
  }[];
}

const hosted = (changes: { readonly [text: string]: string } = {}): string =>
  Object.entries(changes).reduce(
    (text, [before, after]) => text.replace(before, after),
    `id = "greetings"
loop = "hello"
input = { name = "Ada" }

[grant]
allowedTools = []
limits = { turns = 3 }

[stop]
maxTurns = 3
`,
  );

verifies('hosted.document', 'check accepts a good hosted loop file, given or found', async () => {
  const project = new Project();
  project.write('loops/greetings.toml', hosted());
  const file = project.path('loops/greetings.toml');
  const found = await project.json<Report>(['check']);
  expect(found.ok).toBe(true);
  expect(found.files.find((item) => item.file === file)).toEqual({ file, ok: true, errors: [], warnings: [] });
  project.write('elsewhere.toml', hosted());
  const given = await project.run(['check', 'elsewhere.toml']);
  expect(given).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('elsewhere.toml:1:1: /id: is also the id of'),
  });
  project.write('elsewhere.toml', hosted({ greetings: 'others' }));
  expect(await project.run(['check', 'elsewhere.toml'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^ok {2}.*elsewhere\.toml\nNo problems found\.\n$/),
  });
});

verifies(
  'hosted.document',
  'check reports a bad hosted loop file with path and line, and not as a workflow',
  async () => {
    const project = new Project();
    project.write('loops/greetings.toml', hosted({ maxTurns: 'maxTurn', 'turns = 3': 'turn = 3' }));
    const file = project.path('loops/greetings.toml');
    const report = await project.json<Report>(['check']);
    expect(report.ok).toBe(false);
    const checked = report.files.find((item) => item.file === file);
    expect(checked?.errors.map(({ path, line }) => [path, line])).toEqual([
      ['/grant/limits/turn', 7],
      ['/stop/maxTurns', 9],
      ['/stop/maxTurn', 10],
    ]);
    expect(checked?.errors[1]?.reason).toBe('is missing: a hosted loop always has a maximum of turns');
    const text = await project.run(['check', 'loops/greetings.toml']);
    expect(text.code).toBe(1);
    expect(text.stdout).toContain(`bad  ${file}\n`);
    expect(text.stdout).toContain(`${file}:10:1: /stop/maxTurn: is not a known key`);
    const listed = await project.json<{ bad: unknown[] }>(['list']);
    expect(listed.bad).toEqual([]);
  },
);

verifies(
  'hosted.document',
  'check reports a hosted loop whose loop does not exist, or could not be loaded',
  async () => {
    const project = new Project();
    project.write('loops/greetings.toml', hosted({ '"hello"': '"helo"' }));
    const missing = await project.run(['check', 'loops/greetings.toml']);
    expect(missing.code).toBe(1);
    expect(missing.stdout).toContain(':2:1: /loop: is "helo", and there is no such loop; did you mean "hello"?');
    project.write('loops/broken.json', '{"id": ');
    project.write('loops/greetings.toml', hosted({ '"hello"': '"broken"' }));
    const broken = await project.run(['check', 'loops/greetings.toml']);
    expect(broken.stdout).toContain('/loop: is "broken", which could not be loaded');
  },
);

verifies('hosted.document', 'a hosted loop file is not run as a loop', async () => {
  const project = new Project();
  project.write('loops/greetings.toml', hosted());
  const run = await project.run(['run', 'loops/greetings.toml']);
  expect(run.code).not.toBe(0);
  expect(run.stderr).toContain('contains a hosted loop');
});

const PRICED = { 'limits = { turns = 3 }': 'limits = { turns = 3, costMicros = 5 }' };
const NO_FIRST_INPUT = { 'input = { name = "Ada" }': 'next.name = "$.last.output.name"' };

verifies(
  'hosted.document',
  'check and start refuse a hosted loop whose first turn cannot run, with its place, and spend no id',
  async () => {
    const project = new Project();
    for (const [changes, problem] of [
      [
        PRICED,
        /greetings\.toml:7:23: \/grant\/limits\/costMicros: limits what models cost, and "mock\/mock-1" has no price/,
      ],
      [
        NO_FIRST_INPUT,
        /greetings\.toml:3:6: \/next\/name: is \$\.last\.output\.name, which the first turn does not have/,
      ],
    ] as const) {
      project.write('loops/greetings.toml', hosted(changes));
      const checked = await project.run(['check']);
      expect(checked, 'a loop that can never run passes the check').toMatchObject({ code: 1 });
      expect(checked.stdout).toMatch(problem);
      const started = await project.run(['host', 'start', 'greetings']);
      expect(started, 'a loop that can never run was started').toMatchObject({ code: 1 });
      expect(started.stderr).toMatch(problem);
    }
    expect(await project.json(['host', 'status'])).toEqual({ loops: [] });
    project.write('rondo.toml', '[prices."mock/mock-1"]\ninputPerMillion = 0\noutputPerMillion = 0\n');
    project.write('loops/greetings.toml', hosted(PRICED));
    expect(await project.run(['check'])).toMatchObject({ code: 0 });
  },
);

verifies(
  'hosted.grant',
  'check and start refuse a grant id that another hosted loop has with other limits',
  async () => {
    const project = new Project();
    const withId = { '[grant]': '[grant]\nid = "shared"' };
    project.write('loops/greetings.toml', hosted(withId));
    expect((await project.run(['host', 'start', 'greetings'])).code).toBe(0);
    const other = hosted({ ...withId, '"greetings"': '"others"', 'turns = 3': 'turns = 2' });
    project.write('loops/others.toml', other);
    const checked = await project.run(['check']);
    expect(checked.code).toBe(1);
    for (const [file, name] of [
      ['others', 'greetings'],
      ['greetings', 'others'],
    ])
      expect(checked.stdout).toContain(`${file}.toml:6:1: /grant/id: is also the id of the grant of "${name}"`);
    // The file of the other one may be gone, or elsewhere.
    project.write('loops/greetings.toml', hosted());
    const started = await project.run(['host', 'start', 'others']);
    expect(started, 'a loop that can never run was started').toMatchObject({ code: 1 });
    expect(started.stderr).toMatch(/GRANT_CONFLICT: .*others\.toml:6:1: \/grant\/id: The grant id "shared" is known/);
    expect(await project.json(['host', 'status'])).toMatchObject({ loops: [{ loop: 'greetings' }] });
  },
);

verifies(
  'hosted.control',
  'a worker says which loop it paused and why, and resume goes on after the repair',
  async () => {
    const project = new Project();
    const prices = '[prices."mock/mock-1"]\ninputPerMillion = 0\noutputPerMillion = 0\n';
    project.write('rondo.toml', prices);
    project.write('loops/greetings.toml', hosted({ ...PRICED, 'maxTurns = 3': 'maxTurns = 1' }));
    expect(await project.run(['host', 'start', 'greetings'])).toMatchObject({ code: 0 });
    project.write('rondo.toml', '');
    const { stderr } = await project.run(['worker', '--once']);
    expect(stderr, 'a loop that waits for its operator was silent').toMatch(
      /^greetings is paused: price\. .*"mock\/mock-1" has no price.*\nWhen it is repaired: rondo host resume greetings\n/,
    );
    expect(await project.json(['host', 'status', 'greetings'])).toMatchObject({ status: 'paused', reason: 'price' });
    project.write('rondo.toml', prices);
    await project.run(['host', 'resume', 'greetings']);
    expect((await project.run(['worker', '--once'])).stderr).toContain('greetings stopped: max_turns.');
  },
);

verifies(
  'hosted.document',
  'check compares next and the outputs that stop a loop with the schemas of the loop',
  async () => {
    const schema = (properties: object) => ({
      ...{ type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
    });
    const ask = {
      ...{ id: 'ask', name: 'Ask', version: '1.0.0', kind: 'tool', tool: { implementation: 'builtin:echo' } },
      ...{ inputSchema: schema({ x: { type: 'integer' } }), outputSchema: schema({ label: { type: 'string' } }) },
    };
    const project = new Project({ ask });
    const problemOf = async (next: string, stop = ''): Promise<readonly string[]> => {
      project.write(
        'loops/asks.toml',
        `id = "asks"\nloop = "ask"\ninput = { x = 1 }\n${next}\n[grant]\nallowedTools = ["ask"]\nlimits = {}\n[stop]\nmaxTurns = 3\n${stop}\n`,
      );
      const { files } = await project.json<Report>(['check']);
      const { errors } = files.find(({ file }) => file.endsWith('asks.toml')) ?? { errors: [] };
      return errors.map(({ path, line, reason }) => `${path}:${line}: ${reason}`);
    };
    expect(await problemOf('next = { x = "$.turn" }', 'terminal = { path = "$.label", equals = "done" }')).toEqual([]);
    for (const [next, expected] of [
      ['{ y = "$.turn" }', 'requires "x", which is not passed'],
      ['{ x = "literal:abc" }', 'takes integer as "x", and gets string'],
      ['{ x = "$.last.output.label" }', 'takes integer as "x", and gets string'],
      ['{ x = "$.last.output.nope" }', '$.last.output.nope matches nothing'],
      ['{ x = "$.signal.payload.x" }', '$.signal.payload.x matches nothing'],
    ] as const)
      expect((await problemOf(`next = ${next}`)).join('\n'), next).toMatch(
        new RegExp(`^/next.*:4: .*${expected.replaceAll(/[$.]/g, '\\$&')}`),
      );
    const [terminal] = await problemOf('', 'terminal = { path = "$.state", equals = "done" }');
    expect(terminal).toMatch(/^\/stop\/terminal\/path:\d+: \$\.output\.state matches nothing/);
  },
);
