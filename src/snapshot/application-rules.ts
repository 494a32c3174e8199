// Rules about applications: a domain belongs to one of them.
import type { Application } from "../model/application.ts";
import type { Candidate } from "./candidate.ts";
import type { ProblemList } from "./problem.ts";

export function checkApplications({ config, difference }: Candidate, list: ProblemList): void {
  const { upserts } = difference.applications;
  if (upserts.length > 0) checkDomains(upserts, config.applications.values(), list);
}

function checkDomains(
  upserts: readonly Application[],
  all: Iterable<Application>,
  list: ProblemList,
): void {
  const owners = new Map<string, Application>();
  const changed = new Set(upserts.map(({ id }) => id));
  const others = [...all].filter(({ id }) => !changed.has(id));
  // Switched off by its source, whose container is gone.
  const isGone = ({ managed_by, enabled }: Application) => managed_by !== undefined && !enabled;
  for (const application of [...others, ...upserts].filter((one) => !isGone(one)))
    for (const [index, domain] of application.domains.entries()) {
      const owner = owners.get(domain);
      if (owner === undefined) owners.set(domain, application);
      else if (owner.id !== application.id)
        list.of("applications", application.id)(
          `domains[${index}]`,
          `${domain} belongs to application "${owner.name}"`,
          409,
        );
    }
}
