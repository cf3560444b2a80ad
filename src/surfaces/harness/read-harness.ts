/**
 * Reads the harness of a directory: `harness.toml` or `harness.json`, and the scripts and grants that it names. All of
 * it is checked before anything runs. Files that it names lie inside of the directory.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Fault, LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import { compileSchema, type Validator } from '../../json/schema.js';
import { copyAsJson } from '../../json/value.js';
import { didYouMean } from '../../loops/definition/shape.js';
import { signalNameProblem } from '../../loops/signal-name.js';
import type { Grant } from '../../protocol/grant.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { isInside, realPathOf, trustPredicateOf } from '../authority.js';
import { type ScriptStep, toScriptSteps } from '../compose/harness-models.js';
import { readDocumentIn } from '../compose.js';
import { withAbsoluteRoots } from '../grant-roots.js';
import { type Authority, UsageError } from '../settings.js';
import { describeIssue } from './describe-issue.js';
import type {
  CaseAnswer,
  CaseSignal,
  Harness,
  HarnessCase,
  HostedExpectation,
  TurnExpectation,
} from './harness-case.js';
import { harnessSchema, hostedCaseSchema, turnCaseSchema } from './harness-schema.js';

const FILE_NAMES = ['harness.toml', 'harness.json'] as const;
const MAX_BYTES = 8 * 1024 * 1024;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Where the definitions of a harness may lie besides its own directory. */
export interface HarnessLocation {
  readonly cwd: string;
  readonly authority: Authority;
}

/**
 * Reads the harness of a directory. Throws a UsageError if there is none, and CONFIG_INVALID with the path of the
 * problem if it is invalid.
 */
export async function readHarness(directory: string, location: HarnessLocation): Promise<Harness> {
  const name = harnessFileIn(directory);
  const reader = new HarnessReader(directory, join(directory, name));
  const value = await reader.readDocument(name, '');
  reader.check(compileSchema(harnessSchema, ''), value, '');
  const document = value as JsonObject;
  const items = document.cases as readonly JsonObject[];
  const cases: HarnessCase[] = [];
  for (const [index, item] of items.entries()) cases.push(await reader.readCase(item, `/cases/${index}`));
  reader.checkNames(cases);
  return { file: reader.file, loops: reader.loopsDirectory(document, location), cases };
}

/** Returns the name of the harness file. Throws a UsageError unless there is exactly one. */
function harnessFileIn(directory: string): string {
  const found = FILE_NAMES.filter((name) => existsSync(join(directory, name)));
  const [name] = found;
  if (name === undefined) throw new UsageError(`${directory} has no harness: no ${FILE_NAMES.join(' and no ')}.`);
  if (found.length > 1) throw new UsageError(`${directory} has both ${found.join(' and ')}; keep one.`);
  return name;
}

/** Returns the reason for which a case without `loop` and `host` is refused. */
function missingSubject(members: readonly string[]): string {
  const nearest = members.map((member) => nearestWord(member, ['loop', 'host'])).find((word) => word !== undefined);
  return `must have loop, for one turn, or host, for a hosted loop${didYouMean(nearest)}`;
}

class HarnessReader {
  readonly file: string;
  private readonly directory: string;

  constructor(directory: string, file: string) {
    this.directory = directory;
    this.file = file;
  }

  /** Reads a document inside of the directory. `path` is where the harness names it. */
  async readDocument(name: string, path: string): Promise<Json> {
    try {
      const value = copyAsJson(await readDocumentIn(this.directory, name, MAX_BYTES), 'the document');
      return value ?? null;
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown;
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw this.invalid(path, path === '' ? reason : `${name} cannot be used: ${reason}`);
    }
  }

  check(validator: Validator, value: Json, path: string): void {
    const issues = validator.issues(value);
    // A member that is missing may be one that is misspelt.
    const issue = issues.find(({ keyword }) => keyword === 'additionalProperties') ?? issues[0];
    // guard: harness-members-known
    if (issue !== undefined) throw this.invalid(`${path}${issue.path}`, describeIssue(issue, validator.schema));
  }

  checkNames(cases: readonly HarnessCase[]): void {
    const seen = new Set<string>();
    for (const [index, { name }] of cases.entries()) {
      // The names are names of files, some of which do not distinguish cases.
      const key = name.toLowerCase();
      if (seen.has(key)) throw this.invalid(`/cases/${index}/name`, `"${name}" is the name of an earlier case`);
      seen.add(key);
    }
  }

  /** Returns the directory of the definitions: that of the harness, or undefined for that of the project. */
  loopsDirectory({ loops }: JsonObject, { cwd, authority }: HarnessLocation): string | undefined {
    const directory = resolve(this.directory, typeof loops === 'string' ? loops : 'loops');
    const real = realPathOf(directory);
    if (real === undefined && loops === undefined) return undefined;
    if (real === undefined) throw this.invalid('/loops', 'there is no such directory');
    const homes = [this.directory, cwd].map((home) => realPathOf(home) ?? home);
    const isPermitted = homes.some((home) => isInside(home, real)) || trustPredicateOf(authority)(this.directory);
    // guard: harness-definitions-confined
    if (!isPermitted)
      throw this.invalid('/loops', `is outside of ${this.directory}, which is not trusted, and of ${cwd}`);
    return directory;
  }

  async readCase(item: JsonObject, path: string): Promise<HarnessCase> {
    const isHosted = Object.hasOwn(item, 'host');
    const isTurn = Object.hasOwn(item, 'loop');
    if (isHosted && isTurn) throw this.invalid(path, 'has both loop and host; keep one');
    if (!isHosted && !isTurn) throw this.invalid(path, missingSubject(Object.keys(item)));
    this.check(compileSchema(isHosted ? hostedCaseSchema : turnCaseSchema, ''), item, path);
    const shared = await this.readShared(item, path);
    if (isHosted) {
      const file = await this.existingFile(String(item.host), `${path}/host`);
      return { kind: 'hosted', ...shared, file, expect: item.expect as unknown as HostedExpectation };
    }
    const { grant, input = {} } = item;
    const granted = grant === undefined ? {} : { grant: await this.readGrant(grant, `${path}/grant`) };
    const expect = item.expect as unknown as TurnExpectation;
    return { kind: 'turn', ...shared, ...granted, loop: String(item.loop), input, expect };
  }

  private async readShared(item: JsonObject, path: string) {
    const { name, script, now, approvals = [], signals = [] } = item;
    const steps = script === undefined ? {} : { script: await this.readScript(script, `${path}/script`) };
    const start = now === undefined ? {} : { startsAt: this.timeOf(String(now), `${path}/now`) };
    for (const [index, { name: signal }] of (signals as readonly JsonObject[]).entries()) {
      const problem = signalNameProblem(signal);
      if (problem !== undefined) throw this.invalid(`${path}/signals/${index}/name`, problem);
    }
    return {
      name: String(name),
      approvals: approvals as unknown as readonly CaseAnswer[],
      signals: signals as unknown as readonly CaseSignal[],
      ...steps,
      ...start,
    };
  }

  private async readScript(script: Json, path: string): Promise<readonly ScriptStep[]> {
    const steps = typeof script === 'string' ? await this.readDocument(script, path) : script;
    try {
      return toScriptSteps(steps, 'The script');
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      throw this.invalid(path, thrown.message);
    }
  }

  private async readGrant(grant: Json, path: string): Promise<Grant> {
    const document = typeof grant === 'string' ? await this.readDocument(grant, path) : grant;
    if (!isObject(document)) throw this.invalid(path, 'must be an object, or the path of a file with one');
    return withAbsoluteRoots(document, this.directory);
  }

  private timeOf(text: string, path: string): number {
    const time = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
    if (Number.isNaN(time)) throw this.invalid(path, 'must be a time such as 2026-01-31T09:00:00Z');
    return time;
  }

  private async existingFile(name: string, path: string): Promise<string> {
    await this.readDocument(name, path);
    return join(this.directory, name);
  }

  private invalid(path: string, reason: string): LoopError {
    const { file } = this;
    const message = `${file}${path === '' ? '' : `: ${path}`}: ${reason.replace(/\.$/, '')}${reason.endsWith('?') ? '' : '.'}`;
    return new LoopError('CONFIG_INVALID', message, { file, path, reason });
  }
}
