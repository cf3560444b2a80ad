// A project with hosted loops.

import { Project } from '../support/cli-project.js';

const GRANT = 'grant = { allowedTools = [], limits = {} }';
/** A hosted loop that runs two turns. */
export const QUICK = `id = "quick"\nloop = "hello"\ninput = { name = "Ada" }\n${GRANT}\nstop = { maxTurns = 2 }\n`;
const MAIL = `id = "mail"\nloop = "hello"\ninput = { name = "Ada" }\n${GRANT}\nstop = { maxTurns = 9 }
signals = { alarm = { schema = true }, ping = { schema = true } }\n`;

/** A project with the hosted loops `quick` and `mail`; `mail` declares signals. */
export function projectWithHostedLoops(): Project {
  const project = new Project();
  project.write('loops/quick.toml', QUICK);
  project.write('loops/mail.toml', MAIL);
  return project;
}
