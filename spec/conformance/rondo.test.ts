// Runs the conformance suite on Rondo and maps its checks to the requirements of LSEM v0.1.

import { beforeAll, expect } from 'vitest';
import { mockProvider } from '../../src/adapters/models/index.js';
import { systemClock, systemIds } from '../../src/adapters/system/index.js';
import { builtinTools } from '../../src/adapters/tools/index.js';
import type { ConformanceReport } from '../../src/conformance/report.js';
import { rondoDriver } from '../../src/conformance/rondo.js';
import { checkConformance } from '../../src/conformance/run-suite.js';
import { verifies } from '../verifies.js';

let report: ConformanceReport;

beforeAll(async () => {
  const options = {
    clock: systemClock,
    ids: systemIds,
    providers: [mockProvider()],
    implementations: [builtinTools()],
  };
  report = await checkConformance(rondoDriver(options));
});

function allPass(...ids: readonly string[]): () => void {
  return () => {
    const rows = ids.map((id) => report.checks.find((check) => check.id === id));
    const statuses = rows.map(
      (row, index) => `${ids[index]} ${row?.status}${row?.status === 'pass' ? '' : ` ${row?.note}`}`,
    );
    expect(statuses).toEqual(ids.map((id) => `${id} pass`));
  };
}

verifies('lsem.9.conformance', 'Rondo passes every check of the suite, with agents and plans', () => {
  const failed = report.checks
    .filter(({ status }) => status !== 'pass')
    .map(({ id, status, note }) => `${id} ${status}: ${note}`);
  expect(failed).toEqual([]);
  expect(report.summary).toMatchObject({ failed: 0, knownFailures: 0, conformant: true });
  expect(report.checks.length).toBeGreaterThanOrEqual(61);
  expect(report.points.map(({ status }) => status)).toEqual(['pass', 'pass', 'pass', 'pass', 'pass']);
});

verifies('lsem.3.kind', 'a loop has exactly one kind', allPass('DEF-05', 'DEF-06', 'DEF-07'));
verifies(
  'lsem.4.shape',
  'a definition is accepted exactly if LSEM allows it',
  allPass('DEF-01', 'DEF-02', 'DEF-04', 'DEF-09', 'DEF-11', 'DEF-12'),
);
verifies('lsem.4.unique', 'an id refers to one loop', allPass('DEF-03'));
verifies('lsem.4.schemas', 'schemas are interpreted as JSON Schema specifies', allPass('DEF-08', 'DEF-10', 'VAL-07'));
verifies('lsem.4.input', 'an invalid input never reaches a body', allPass('VAL-01', 'VAL-02', 'VAL-05', 'VAL-06'));
verifies('lsem.4.output', 'an invalid output never counts as a success', allPass('VAL-03', 'VAL-04', 'VAL-05'));
verifies('lsem.5.prompt', 'a prompt goes through every transition', allPass('LIF-01', 'LIF-04'));
verifies('lsem.5.tool', 'a tool goes through every transition', allPass('LIF-02', 'LIF-05'));
verifies('lsem.5.composite', 'every child is framed', allPass('LIF-03', 'LIF-09'));
verifies('lsem.5.transition', 'every call ends exactly once', allPass('LIF-06', 'TRC-17', 'TRC-18'));
verifies('lsem.5.failure', 'every failure has a result', allPass('LIF-07', 'LIF-08', 'CMP-08', 'CMP-11', 'CMP-12'));
verifies('lsem.6.event', 'every event has a callId, a ts and a type', allPass('TRC-01', 'TRC-02', 'TRC-03'));
verifies('lsem.6.call.started', 'call.started names the loop', allPass('TRC-04', 'CMP-10'));
verifies('lsem.6.call.input.validated', 'call.input.validated has a duration', allPass('TRC-05'));
verifies(
  'lsem.6.call.backend.requested',
  'call.backend.requested names the actual backend and model',
  allPass('TRC-06'),
);
verifies('lsem.6.call.backend.responded', 'call.backend.responded has the token counts', allPass('TRC-07'));
verifies('lsem.6.call.tool.invoked', 'call.tool.invoked names the tool', allPass('TRC-08'));
verifies('lsem.6.call.tool.returned', 'call.tool.returned has a duration', allPass('TRC-09'));
verifies('lsem.6.child.started', 'child.started names the child', allPass('TRC-10', 'CMP-13'));
verifies('lsem.6.child.completed', 'child.completed has the status of the child', allPass('TRC-11'));
verifies('lsem.6.call.output.validated', 'call.output.validated has the duration of the validation', allPass('TRC-12'));
verifies('lsem.6.call.completed', 'call.completed has the total duration', allPass('TRC-12'));
verifies('lsem.6.call.errored', 'call.errored has a code and a message', allPass('TRC-13'));
verifies('lsem.6.log', 'a body can log', allPass('TRC-14'));
verifies(
  'lsem.6.vendor',
  "a vendor's event type is accepted and cannot redefine a core type",
  allPass('TRC-15', 'TRC-16'),
);
verifies('lsem.7.order', 'steps run in order', allPass('CMP-01', 'CMP-07'));
verifies('lsem.7.mapping', 'a mapping reads the value at its path', allPass('CMP-02', 'CMP-09'));
verifies('lsem.7.binding', 'a binding is the result of its step', allPass('CMP-03', 'CMP-04', 'CMP-05'));
verifies('lsem.7.output', 'the output of a composite is the output of its last step', allPass('CMP-06'));
verifies(
  'lsem.suite',
  'the report is complete, and the suite requires nothing beyond LSEM',
  allPass('CNF-01', 'NEG-01'),
);
