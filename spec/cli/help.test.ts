// The help lists every verb, and every verb has a help text with an example.

import { expect } from 'vitest';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const contract =
  'init dev completion run chat list show check plan runs status trace events resume retry fork receipts verify export keys close worker cancel approvals approve deny resolve signal replay diff trust conformance host harness doctor remove demo';

verifies('cli.help', 'the help lists every verb of the published surface', async () => {
  expect(verbs.map(({ name }) => name).sort()).toEqual(contract.split(' ').sort());
  const { code, stdout } = await new Project().run(['--help']);
  expect(code).toBe(0);
  for (const { name, group, description } of verbs) {
    expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    expect(stdout).toContain(`\n${group}:\n`);
    expect(description).toMatch(/^[A-Z].*\.$/);
  }
  expect(stdout).toContain('Exit codes:');
  expect(stdout).toMatch(/\$ rondo run/);
});

verifies('cli.help', 'the help of every verb shows its options and examples', async () => {
  const project = new Project();
  for (const { name, options, examples } of verbs) {
    const { code, stdout } = await project.run([name, '--help']);
    expect(code).toBe(0);
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) expect(stdout).toContain(`$ ${example}`);
    for (const [flags] of options) expect(stdout).toContain(flags);
    expect(stdout).toContain('--data <dir>');
  }
});

verifies('cli.help', 'every example of the help uses existing options', async () => {
  const names = new Set(verbs.map(({ name }) => name));
  for (const { name, options, examples } of verbs) {
    for (const example of examples) {
      expect(example.startsWith(`rondo ${name}`)).toBe(true);
      const used = example.match(/ --[a-z-]+/g)?.map((flag) => flag.trim()) ?? [];
      const allowed = [...options.map(([flags]) => flags.split(' ')[0]), '--loops', '--send', '--reach'];
      for (const flag of used) expect(allowed).toContain(flag);
    }
  }
  expect(names.size).toBe(verbs.length);
});

verifies('cli.help', 'help that was requested exits with 0, on stdout', async () => {
  const project = new Project();
  for (const args of [[], ['help'], ['help', 'run'], ['help', 'help'], ['run', '--help'], ['--help'], ['run', '-h']]) {
    const { code, stdout, stderr } = await project.run(args);
    expect([args, code, stderr]).toEqual([args, 0, '']);
    expect(stdout).toContain('Usage: rondo');
  }
});

verifies('cli.help', 'help about an unknown verb, and settings without a verb, are usage errors', async () => {
  const project = new Project();
  const unknown = await project.run(['help', 'rnu']);
  expect(unknown).toMatchObject({ code: 64, stdout: '' });
  expect(unknown.stderr).toContain('There is no verb "rnu". Did you mean "run"?');
  expect((await project.run(['--data', 'x'])).code).toBe(64);
});

verifies('cli.help', '--version prints the version of the package', async () => {
  const project = new Project();
  const { code, stdout } = await project.run(['--version']);
  expect(code).toBe(0);
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
  expect(stdout).toBe(`${manifest.version}\n`);
});
