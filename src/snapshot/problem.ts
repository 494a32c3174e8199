// What is wrong with one object of a configuration and where the object is; knows no rule.
import type { Issue } from "../model/error.ts";
import type { CollectionName, SingletonName } from "../model/gateway-config.ts";

/** An issue whose path starts inside the object that it is about. */
export interface Problem extends Issue {
  readonly collection: CollectionName | SingletonName;
  /** Empty for what exists only once. */
  readonly id: string;
}

/** Takes down problems of one object at a time. */
export type Report = (path: string, message: string, status?: 400 | 409) => void;

/** A list of problems and the function that adds to it for one object. */
export class ProblemList {
  readonly problems: Problem[] = [];

  of(collection: Problem["collection"], id = ""): Report {
    return (path, message, status = 400) => {
      this.problems.push({ collection, id, path, message, status });
    };
  }
}
