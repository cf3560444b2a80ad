/** The catalogue of conformance checks, in the order of the report. */
import type { ConformanceCheck } from './check.js';
import { compositionChecks } from './checks/composition.js';
import { definitionContentChecks } from './checks/definition-content.js';
import { definitionChecks } from './checks/definitions.js';
import { lifecycleChecks } from './checks/lifecycle.js';
import { payloadChecks } from './checks/payloads.js';
import { traceChecks } from './checks/trace.js';
import { validationChecks } from './checks/validation.js';

const byId = (a: ConformanceCheck, b: ConformanceCheck): number => (a.id < b.id ? -1 : 1);

/** All checks that a runtime is tested with. Checks that two files share are sorted by id. */
export const catalogue: readonly ConformanceCheck[] = [
  ...[...definitionChecks, ...definitionContentChecks].sort(byId),
  ...validationChecks,
  ...lifecycleChecks,
  ...[...traceChecks, ...payloadChecks].sort(byId),
  ...compositionChecks,
];
