// Metrics of this node in its fleet; knows no database and no format.
import { type FleetFigures, nodeStates } from "../../control/fleet-view.ts";
import type { Metric } from "./text-format.ts";

export function fleetMetrics(figures: FleetFigures): Metric[] {
  const { states, head, stored, served, lagSeconds, append, ack, isConnected } = figures;
  const { conflicts, doubts, clockOffsetSeconds } = figures;
  return [
    nodeInfo(figures),
    {
      name: "sluice_fleet_nodes",
      help: "Nodes of the fleet by state, as this node sees them.",
      type: "gauge",
      samples: nodeStates.map((state) => ({
        labels: { state },
        value: states.get(state) ?? 0,
      })),
    },
    gauge("sluice_fleet_head_position", "Position of the last entry of the fleet's log.", head),
    gauge(
      "sluice_fleet_stored_position",
      "Position of the last entry in the database of this node.",
      stored,
    ),
    gauge(
      "sluice_fleet_served_position",
      "Position of the last entry that all workers of this node serve.",
      served,
    ),
    gauge(
      "sluice_fleet_lag_seconds",
      "How long this node has not served the last entry; 0 when it does.",
      lagSeconds,
    ),
    histogram("sluice_fleet_append_seconds", "Time to append an entry to the fleet's log.", append),
    histogram(
      "sluice_fleet_ack_seconds",
      "Time from the append of a change of this node until all nodes served it.",
      ack,
    ),
    counter(
      "sluice_fleet_conflicts",
      "Changes that ran again because another node appended first.",
      conflicts,
    ),
    counter(
      "sluice_fleet_doubts",
      "Appends whose result was not known when the connection broke.",
      doubts,
    ),
    gauge(
      "sluice_fleet_database_up",
      "1 while the database of the fleet answers.",
      isConnected ? 1 : 0,
    ),
    gauge(
      "sluice_fleet_leader",
      "1 on the node that does the work of one node.",
      figures.isLeader ? 1 : 0,
    ),
    gauge(
      "sluice_fleet_clock_offset_seconds",
      "How far the clock of this node is ahead of the database's.",
      clockOffsetSeconds,
    ),
  ];
}

const nodeInfo = ({ name, id }: FleetFigures): Metric => ({
  name: "sluice_node_info",
  help: "1, with the name and the id of this node in its fleet, to join on.",
  type: "gauge",
  samples: [{ labels: { node: name, node_id: id }, value: 1 }],
});

const gauge = (name: string, help: string, value: number | null): Metric => ({
  name,
  help,
  type: "gauge",
  samples: value === null ? [] : [{ labels: {}, value }],
});

const counter = (name: string, help: string, value: number): Metric => ({
  name,
  help,
  type: "counter",
  samples: [{ labels: {}, value }],
});

const histogram = (name: string, help: string, durations: FleetFigures["ack"]): Metric => ({
  name,
  help,
  type: "histogram",
  samples: [durations.sample()],
});
