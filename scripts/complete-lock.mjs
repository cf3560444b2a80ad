// Completes package-lock.json of the current folder after `npm install`. If a registry lacks packages for other
// platforms, npm leaves them out of the lockfile, and `npm ci` then fails on every platform. This script adds each missing
// package with the version that its parent pins and the platform in its name, so that npm installs it on that platform
// and skips it on others.

import { readFileSync, writeFileSync } from 'node:fs';

/** @typedef {{ optionalDependencies?: Record<string, string>, dev?: boolean, license?: string }} Entry */

const file = 'package-lock.json';
/** @type {{ packages: Record<string, Entry> }} */
const lock = JSON.parse(readFileSync(file, 'utf8'));

/** @param {string} name */
function platformOf(name) {
  const nameParts = name.split('/').at(-1)?.split('-') ?? [];
  const os = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'].filter((part) =>
    nameParts.includes(part),
  );
  const cpu = ['arm', 'arm64', 'ppc64', 's390x', 'x64'].filter((part) => nameParts.includes(part));
  if (os.length !== 1 || cpu.length !== 1) throw new Error(`${name} does not name its platform; add it by hand`);
  const libc = nameParts.some((part) => part.startsWith('musl')) ? ['musl'] : ['glibc'];
  return { cpu, ...(os[0] === 'linux' && { libc }), os };
}

/** @type {Record<string, object>} */
const addedPackages = {};
for (const [path, parent] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    if (lock.packages[`node_modules/${name}`] || lock.packages[`${path}/node_modules/${name}`]) continue;
    const { cpu, ...rest } = platformOf(name);
    const dev = parent.dev ? { dev: true } : {};
    addedPackages[`node_modules/${name}`] = { version, cpu, ...dev, license: parent.license, optional: true, ...rest };
  }
}

const packages = Object.entries({ ...lock.packages, ...addedPackages }).sort(([a], [b]) => a.localeCompare(b, 'en'));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(packages) }, null, 2)}\n`);
console.log(`added ${Object.keys(addedPackages).length} platform packages`);
