// The notice of this node's place in its fleet, on every page: cut off, behind, draining, or other nodes missing.
import { Alert, Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useStatus } from "../api/queries.ts";
import type { Schemas } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { RelativeTime } from "../parts/status.tsx";

export function FleetBanner() {
  const { data } = useStatus();
  const fleet = data?.fleet ?? null;
  const notice = fleet === null ? null : noticeOf(fleet);
  if (notice === null) return null;
  const { color, title, text } = notice;
  return (
    <Alert color={color} mb="md" title={title} role="status">
      {text}{" "}
      <Anchor component={Link} href={pagePath("fleet")} size="sm">
        Show the nodes
      </Anchor>
    </Alert>
  );
}

interface Notice {
  readonly color: "red" | "yellow" | "blue";
  readonly title: string;
  readonly text: ReactNode;
}

/** Every change makes a node lag for a moment. */
const LAG_MS = 5000;

function noticeOf(fleet: Schemas["FleetStatus"]): Notice | null {
  const { node, state, since, head, served, live, nodes } = fleet;
  const time = <RelativeTime at={since} />;
  const behind = head - served;
  const entries = behind === 1 ? "1 entry" : `${behind} entries`;
  switch (state) {
    case "cut_off":
      return {
        color: "red",
        title: `Node ${node} is cut off from the database of the fleet`,
        text: (
          <>
            The connection was lost {time}. The node serves the configuration that it has; changes
            are refused until the database responds.
          </>
        ),
      };
    case "refused":
      return {
        color: "red",
        title: `Node ${node} cannot serve the next change`,
        text: (
          <>
            Since {time}. It serves the configuration before that change, {entries} behind the
            fleet. The page Fleet has the reason: once that is removed, it follows within seconds.
          </>
        ),
      };
    case "outdated":
      return {
        color: "red",
        title: `Node ${node} runs an older version than the fleet`,
        text: (
          <>
            It fell behind {time}, {entries} behind the fleet. Upgrade it to serve the changes of
            newer nodes.
          </>
        ),
      };
    case "diverged":
      return {
        color: "red",
        title: `Node ${node} has changes that the database of the fleet lacks`,
        text: (
          <>
            It stopped following {time}, and serves the configuration that it has. Run{" "}
            <code>sluice fleet adopt</code> on a node: it shows what each has, and asks which state
            is right.
          </>
        ),
      };
    case "draining":
      return {
        color: "blue",
        title: `Node ${node} is draining`,
        text: <>Load balancers send it no new requests. It serves those that still come.</>,
      };
    default:
  }
  if (state !== "serving" && Date.now() - Date.parse(since) > LAG_MS)
    return {
      color: "yellow",
      title: `Node ${node} is ${entries} behind the fleet`,
      text: <>It fell behind {time}. Its pages show the configuration that it serves.</>,
    };
  if (live === null || live === nodes) return null;
  return {
    color: "yellow",
    title: `${live} of ${nodes} nodes are live`,
    text: <>Changes reach the others when they are back.</>,
  };
}
