// Alerts: the list, and which form to open.
import { Text } from "@mantine/core";
import type { Read } from "../../api/resources.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { alertEvents, labelOf } from "./alert-events.ts";
import { AlertForm } from "./alert-form.tsx";
import { DeliveryState, deliveryOf } from "./delivery-state.tsx";

type Alert = Read<"alerts">;

export default resourcePage("alerts", AlertList, AlertForm);

function AlertList() {
  return (
    <ResourceTable
      resource="alerts"
      page="alerts"
      title="Alerts"
      text="Notifications when a target is down, a certificate expires or the error rate is high."
      columns={[
        {
          title: "Destination",
          sortBy: ({ destination }) => destination,
          render: (alert) => <Destination alert={alert} />,
        },
        {
          title: "Events",
          sortBy: ({ events }) => events.length,
          render: (alert) => <Events alert={alert} />,
        },
        {
          title: "Delivery",
          sortBy: deliveryOf,
          render: (alert) => <DeliveryState alert={alert} />,
          width: "11rem",
        },
      ]}
      states={[
        {
          value: "failed",
          label: "Not delivered",
          fits: (alert) => deliveryOf(alert) === "failed",
        },
      ]}
      searchText={({ destination, events }) => `${destination} ${events.map(labelOf).join(" ")}`}
      empty={{
        title: "No alerts yet",
        text: "Get notified by chat, mail or webhook when a target is down or a certificate expires.",
      }}
    />
  );
}

function Destination({ alert: { type, destination } }: { readonly alert: Alert }) {
  return (
    <>
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {destination === "" ? "unknown" : destination}
      </Text>
      <Text size="xs" c="dimmed">
        {type === "smtp" ? "Mail" : "Webhook"}
      </Text>
    </>
  );
}

function Events({ alert: { events } }: { readonly alert: Alert }) {
  const isAll = events.length === alertEvents.length;
  const [first = ""] = events;
  return (
    <Text size="sm" title={events.map(labelOf).join(", ")}>
      {isAll ? "All events" : labelOf(first)}
      {!isAll && events.length > 1 && ` and ${events.length - 1} more`}
    </Text>
  );
}
