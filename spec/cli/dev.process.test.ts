// `rondo dev` as a process: it reloads what changed, reports problems with their place, and ends gracefully.

import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { hello, Project, tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { Clone } from './clone.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface DevEvent {
  readonly type: string;
  readonly loops?: readonly { readonly id: string }[];
  readonly added?: readonly string[];
  readonly changed?: readonly string[];
  readonly removed?: readonly string[];
  readonly files?: readonly string[];
  readonly bad?: readonly { readonly file: string; readonly line?: number; readonly reason: string }[];
  readonly reason?: string;
}

/** A running `rondo dev --json` and its events. */
class Dev {
  readonly process;
  constructor(project: Project, args: readonly string[] = []) {
    this.process = project.start(['dev', '--json', ...args]);
  }

  events(): DevEvent[] {
    const lines = this.process.output().stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as DevEvent);
  }

  /** Waits for an event after the first `seen` ones. */
  next(seen: number, matches: (event: DevEvent) => boolean): Promise<DevEvent> {
    return until(() => this.events().slice(seen).find(matches));
  }

  loaded(seen = 0): Promise<DevEvent> {
    return this.next(seen, ({ type }) => type === 'loaded');
  }

  /** Sends Ctrl-C and returns the exit code. */
  async stop(): Promise<number | null> {
    this.process.child.kill('SIGINT');
    return (await this.process.ended).code;
  }
}

verifies('cli.dev', 'a change is reloaded, and what it changed is reported', async () => {
  const project = new Project({ hello, echo: tool('echo', 'echo') });
  const dev = new Dev(project);
  expect((await dev.loaded()).added).toEqual(['echo@1.0.0', 'hello@1.0.0']);
  let seen = dev.events().length;
  project.write('loops/hello.json', { ...hello, description: 'Says hello.' });
  project.write('loops/other.json', { ...hello, id: 'other' });
  rmSync(project.path('loops/echo.json'));
  const reload = await dev.next(seen, ({ type, removed }) => type === 'loaded' && removed?.length === 1);
  expect(reload).toMatchObject({ changed: ['hello@1.0.0'], added: ['other@1.0.0'], removed: ['echo@1.0.0'] });
  expect(dev.events().find(({ type }) => type === 'changed')?.files).toContain('loops/hello.json');
  seen = dev.events().length;
  project.write('loops/other.json', '{\n  "id": oops\n}');
  const { bad } = await dev.loaded(seen);
  expect(bad).toMatchObject([{ file: project.path('loops/other.json'), line: 2 }]);
  // Any other verb works meanwhile.
  expect(await project.json(['run', 'hello', '--input', '{"name": "Ada"}'])).toMatchObject({ status: 'ok' });
  expect(await dev.stop()).toBe(130);
  expect(dev.events().at(-1)).toEqual({ type: 'stopped' });
});

verifies('cli.dev', 'a change of an imported module is loaded, in TypeScript too', async () => {
  const project = new Project({});
  project.trusted = true;
  project.write('package.json', { type: 'module' });
  mkdirSync(project.path('node_modules'));
  for (const [name, path] of [
    ['rondo', root],
    ['tsx', `${root}/node_modules/tsx`],
  ] as const)
    symlinkSync(path, project.path(`node_modules/${name}`));
  project.write('src/text.ts', "export const text: string = 'one';\n");
  project.write(
    'loops/say.ts',
    `import { defineLoop } from 'rondo';
import { text } from '../src/text.js';
export const say = defineLoop({ id: 'say', description: text, input: {}, output: {}, run: async () => ({ text }) });
`,
  );
  const dev = new Dev(project);
  expect((await dev.loaded()).loops).toMatchObject([{ id: 'say' }]);
  const seen = dev.events().length;
  project.write('src/text.ts', "export const text: string = 'two';\n");
  expect((await dev.loaded(seen)).changed).toEqual(['say@1.0.0']);
  const broken = dev.events().length;
  project.write('src/text.ts', 'export const text: string = ;\n');
  expect((await dev.loaded(broken)).bad?.[0]?.reason).toMatch(/text\.ts:1/);
  expect(await dev.stop()).toBe(130);
});

verifies('hosted.durable', 'dev reports turns that failed and hosted loops that have stopped', async () => {
  const project = new Project({ fail: tool('fail', 'fail') });
  const members =
    'loop = "fail"\ninput = {}\ngrant = { allowedTools = ["fail"], limits = {} }\nstop = { maxTurns = 2 }\n';
  project.write('loops/failing.toml', `id = "failing"\n${members}`);
  expect(await project.run(['host', 'start', 'failing'])).toMatchObject({ code: 0 });
  const dev = new Dev(project);
  const stopped = await until(() => /^failing stopped: .*$/m.exec(dev.process.output().stderr)?.[0]);
  expect(stopped).toContain('turn_failed');
  expect(dev.process.output().stderr, 'a failure was silent').toMatch(/^error after .*hosted:failing:1/m);
  await dev.stop();
});

verifies('cli.dev', 'without --json, people read what happens on stderr', async () => {
  const project = new Project({ hello });
  const { child, ended, output } = project.start(['dev']);
  await until(() => output().stderr.includes('Loaded 1 loop: hello@1.0.0.'));
  expect(output().stderr).toContain('From another terminal, any verb works');
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  expect([code, stdout]).toEqual([130, '']);
  expect(stderr).toContain('rondo resume --all');
});

verifies('authority.verbs', 'dev runs no code of a cloned project that is not trusted', async () => {
  const clone = new Clone();
  const dev = new Dev(clone);
  expect((await dev.loaded()).loops).toContainEqual(expect.objectContaining({ id: 'harmless' }));
  const seen = dev.events().length;
  clone.write('loops/late.mjs', clone.read('loops/code.mjs'));
  await dev.loaded(seen);
  expect(await dev.stop()).toBe(130);
  expect(clone.executed).toBe(false);
});
