// Where the connections of a worker may lead, by the version that it serves; opens none.
import type { Settings } from "../model/settings.ts";
import {
  type Destination,
  destinationProblem,
  type DestinationRules,
  type ListenAddress,
} from "../net/destinations.ts";

export class WorkerDestinations {
  #rules: DestinationRules;

  constructor(management: readonly ListenAddress[] = []) {
    this.#rules = { permitted: [], management };
  }

  readonly rules = (): DestinationRules => this.#rules;

  readonly problemOf = (destination: Destination): string | null =>
    destinationProblem(destination, this.#rules);

  permit({ permitted_destinations: permitted }: Settings): void {
    this.#rules = { ...this.#rules, permitted };
  }

  useManagement(management: readonly ListenAddress[]): void {
    this.#rules = { ...this.#rules, management };
  }
}
