/**
 * Tools for tests: scripted models, a manual clock, journal cases, the conformance suite, a crashing store, an effect
 * sink, random programs, and seeded ids and random numbers.
 */
export type { ScriptedReply } from '../adapters/models/script.js';
export { type ScriptedProvider, scriptedProvider, type UnfinishedScript } from '../adapters/models/scripted.js';
export { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
export type {
  CodeBody,
  CodeScope,
  LsemDriver,
  LsemProfile,
  LsemResult,
  LsemRuntime,
  PromptPiece,
  SuiteToolContext,
  ToolBody,
} from '../conformance/driver.js';
export { renderConformance } from '../conformance/render.js';
export type { CheckResult, ConformanceReport, PointResult } from '../conformance/report.js';
export { type RondoDriverOptions, rondoDriver } from '../conformance/rondo.js';
export { type ConformanceOptions, checkConformance } from '../conformance/run-suite.js';
export { type CrashingStore, type CrashPoint, crashingStore } from './crashing-store.js';
export { type EffectSink, type ReportedEffect, reportEffect, startEffectSink, wasReported } from './effect-sink.js';
export { type JournalCase, journalCases, type StoreUnderTest } from './journal-cases.js';
export { ManualClock } from './manual-clock.js';
export {
  type OutsideWorld,
  type ProgramStep,
  programEffectResult,
  programLoop,
  randomProgram,
} from './random-programs.js';
