// The load balancing algorithms by their name in the configuration; holds no logic.
import type { Service } from "../../model/service.ts";
import type { Balancer, BalancerTarget, Load } from "./balancer.ts";
import { ConsistentHash } from "./consistent-hash.ts";
import { First } from "./first.ts";
import { LeastConnections } from "./least-connections.ts";
import { byLatency, type Cost, RandomTwo } from "./random-two.ts";
import { RoundRobin } from "./round-robin.ts";

/** A balancer over candidates. */
export function createBalancer<T extends BalancerTarget>(
  algorithm: Service["algorithm"],
  candidates: readonly T[],
  load: Load<T>,
): Balancer<T> {
  switch (algorithm) {
    case "round_robin":
      return new RoundRobin(candidates, load);
    case "least_connections":
      return new LeastConnections(candidates, load);
    case "random_two":
      return new RandomTwo(candidates, load);
    case "ewma":
      return new RandomTwo(candidates, load, byLatency as Cost<T>);
    case "consistent_hash":
      return new ConsistentHash(candidates, load);
    case "first":
      return new First(candidates, load);
  }
}
