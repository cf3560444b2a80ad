/** Runs the three programs. Each checks its own result and exits with another code if a check fails. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

let failures = 0;
for (const program of ['script', 'queue-worker', 'orchestrator']) {
  const file = fileURLToPath(new URL(`${program}.mjs`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) failures += 1;
  console.log(status === 0 ? `  ✓ ${stdout.trim()}` : `  ✗ ${program}\n${stderr}`);
}
console.log(failures === 0 ? '\nAll checks passed.' : `\nFailed checks: ${failures}.`);
process.exitCode = failures === 0 ? 0 : 1;
