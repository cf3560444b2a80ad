// The subpaths of the built package, imported by name in a new process and resolved by the compiler.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect } from 'vitest';
import { absolute, readText } from '../house/tree.js';
import { verifies } from '../verifies.js';

const pairs = [
  ['rondo/protocol/events', 'rondo/events'],
  ['rondo/protocol/streaming', 'rondo/streaming'],
  ['rondo/protocol/tools', 'rondo/tools'],
] as const;

/** Runs a module in a new process, in which `rondo` is the built package. Returns the JSON value that it prints. */
function outputOf(program: string): unknown {
  const args = ['--input-type=module', '-e', program];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: absolute('.'), encoding: 'utf8' }));
}

verifies('looops.export.subpaths', 'each subpath below rondo/protocol is the same module as its short name', () => {
  const program = `
    const pairs = ${JSON.stringify(pairs)};
    const same = [];
    for (const [long, short] of pairs) same.push((await import(long)) === (await import(short)));
    console.log(JSON.stringify(same));
  `;
  expect(outputOf(program)).toEqual([true, true, true]);
});

verifies('looops.export.subpaths', 'rondo/protocol re-exports the same objects as its parts', () => {
  const program = `
    const whole = await import('rondo/protocol');
    const parts = [await import('rondo/protocol/events'), await import('rondo/protocol/tools')];
    const members = parts.flatMap((part) => Object.entries(part));
    console.log(JSON.stringify(members.map(([name, value]) => [name, whole[name] === value])));
  `;
  expect(outputOf(program)).toEqual([
    ['EVENT_TYPES', true],
    ['ApprovalRequiredError', true],
    ['loopsTool', true],
    ['tool', true],
  ]);
});

verifies('looops.export.subpaths', 'the compiler finds the types of each subpath below rondo/protocol', () => {
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  };
  const from = absolute('examples/importer.mts');
  for (const [long, short] of pairs) {
    const [a, b] = [long, short].map(
      (name) =>
        ts.resolveModuleName(name, from, options, ts.sys, undefined, undefined, ts.ModuleKind.ESNext).resolvedModule
          ?.resolvedFileName,
    );
    expect(a, long).toMatch(/\/(?:dist|src)\/protocol\/(?:events|streaming|tool)\.(?:d\.)?ts$/);
    expect(a, long).toBe(b);
  }
});

verifies('looops.export.subpaths', 'the entry points for front ends load no Node module and no other file', () => {
  const { exports } = JSON.parse(readText('package.json')) as { exports: Record<string, { default: string }> };
  for (const subpath of ['./protocol/events', './protocol/streaming']) {
    const text = readFileSync(absolute(exports[subpath]?.default ?? ''), 'utf8');
    expect(text, subpath).not.toMatch(/\bimport\b|\brequire\b|node:/);
  }
});
