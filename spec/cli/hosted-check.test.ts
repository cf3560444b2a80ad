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
