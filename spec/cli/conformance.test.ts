// `rondo conformance --driver` prints a report or a reason, however a driver behaves.

import { expect } from 'vitest';
import { findDriverProblem } from '../../src/conformance/driver-shape.js';
import { mini } from '../conformance/mini.js';
import { verifies } from '../verifies.js';

verifies('lsem.suite.driver', 'every member of a driver is checked, and a problem names its path', () => {
  const driver = mini();
  const { profile } = driver;
  expect(findDriverProblem(driver)).toBeUndefined();
  expect(findDriverProblem({ ...driver, open: undefined })).toBe('driver.open is nothing, not a function');
  expect(findDriverProblem({ ...driver, knownFailures: { 'LIF-13': '' } })).toBe(
    'driver.knownFailures.LIF-13 has no reason',
  );
  const tool = { ...profile.tool, echo: undefined };
  expect(findDriverProblem({ ...driver, profile: { ...profile, tool } })).toBe('driver.profile.tool.echo is missing');
  const backend = { ...profile.backend, answering: { ref: {}, id: 'a' } };
  const problem = findDriverProblem({ ...driver, profile: { ...profile, backend } });
  expect(problem).toBe('driver.profile.backend.answering.model is nothing, not a non-empty string');
  expect(findDriverProblem({ ...driver, profile: { ...profile, Code: 1 } })).toContain(
    'driver.profile.Code is not a member',
  );
});
