/**
 * The effect sink: a separate process that records reported effects, each synced to disk before it is acknowledged. A
 * test that kills a runtime reads from it which effects really happened. Repeated reports of one effect have the same
 * key.
 */
import { spawn } from 'node:child_process';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Json } from '../protocol/json.js';

/** One report to the sink. */
export interface ReportedEffect {
  /** Identifies the effect: reports with the same key are repetitions. */
  readonly key: string;
  readonly kind: string;
  readonly data?: Json;
}

/** A running sink. */
export interface EffectSink {
  /** Where to report effects. */
  readonly url: string;
  /** Reads all reports from the file of the sink, in order. */
  reportedEffects(): readonly ReportedEffect[];
  /** Ends the process of the sink. */
  close(): Promise<void>;
}

/**
 * Starts a sink that appends to `file`. It ends when it is closed or when this process ends.
 *
 * @param program The path of this module in compiled form. The default is this module itself.
 */
export async function startEffectSink(
  file: string,
  program: string = fileURLToPath(import.meta.url),
): Promise<EffectSink> {
  const child = spawn(process.execPath, [program, 'rondo-sink', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(String(line).trim()));
    child.once('exit', (code) => reject(new Error(`The sink ended with code ${code} before it was ready.`)));
  });
  const lines = (): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return {
    url,
    reportedEffects: () => lines().map((line) => JSON.parse(line) as ReportedEffect),
    close: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.stdin.end();
      }),
  };
}

/** Reports an effect. Resolves once the sink has it on disk; rejects if the sink cannot be reached. */
export async function reportEffect(url: string, effect: ReportedEffect): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(effect) });
  if (!response.ok) throw new Error(`The sink answered ${response.status}.`);
}

/** True if the sink has received a report with this key since it was started. */
export async function wasReported(url: string, key: string): Promise<boolean> {
  const response = await fetch(`${url}?key=${encodeURIComponent(key)}`);
  return ((await response.json()) as { seen: boolean }).seen;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

function serveEffectSink(file: string): void {
  const log = openSync(file, 'a');
  const reportedKeys = new Set<string>();
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      const effect = JSON.parse(await bodyOf(request)) as ReportedEffect;
      writeSync(log, `${JSON.stringify(effect)}\n`);
      fsyncSync(log);
      reportedKeys.add(effect.key);
    }
    const key = new URL(request.url ?? '/', 'http://sink').searchParams.get('key') ?? '';
    response.end(JSON.stringify({ seen: reportedKeys.has(key) }));
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  process.stdin.resume();
  process.stdin.on('end', () => {
    closeSync(log);
    process.exit(0);
  });
}

if (process.argv[2] === 'rondo-sink' && process.argv[1] === fileURLToPath(import.meta.url))
  serveEffectSink(process.argv[3] ?? '');
