// A problem of one object of a configuration, with its path; knows no rule.
import type { Issue } from "../model/error.ts";
import type { CollectionName, SingletonName } from "../model/gateway-config.ts";
import type { Report } from "../model/object-rules.ts";

/** An issue whose path is relative to its object. */
export interface Problem extends Issue {
  readonly collection: CollectionName | SingletonName;
  /** Empty for singletons. */
  readonly id: string;
}

/** A list of problems, with a reporter for each object. */
export class ProblemList {
  readonly problems: Problem[] = [];

  of(collection: Problem["collection"], id = ""): Report {
    return (path, message, status = 400) => {
      this.problems.push({ collection, id, path, message, status });
    };
  }
}
