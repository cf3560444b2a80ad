export { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
export type {
  CodeBody,
  CodeScope,
  LsemDriver,
  LsemResult,
  LsemRuntime,
  Profile,
  PromptPiece,
  ToolBody,
  ToolVoice,
} from '../conformance/driver.js';
export { type JudgeOptions, judge } from '../conformance/judge.js';
export { renderConformance } from '../conformance/render.js';
export type { CheckResult, ConformanceReport, PointResult } from '../conformance/report.js';
export { type RondoParts, rondoDriver } from '../conformance/rondo.js';
export { type CrashingStore, type CrashPoint, crashingStore } from './crashing-journal.js';
export { type JournalCase, journalCases, type StoreUnderTest } from './journal-cases.js';
export { ManualClock } from './manual-clock.js';
export { answerOf, loopOf, type Outside, randomProgram, type Step } from './programs.js';
export { reportTo, type Sighting, type Sink, seenBy, startSink } from './sink.js';
