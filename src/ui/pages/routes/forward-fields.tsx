// How a route forwards matched requests: paths, host, redirects, timeouts, maintenance; knows no other route.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { RetryFields, retrySummary } from "../services/retry-fields.tsx";
import { defaultRetries } from "../services/service-values.ts";
import type { RouteFieldsProps } from "./route-form.tsx";

export function ForwardFields({ form }: RouteFieldsProps) {
  const { preserve_host, https_redirect, path_rewrite } = form.values;
  return (
    <Section title="Forwarding" text="How matched requests are sent to the service.">
      <Stack>
        <Select
          label="Redirect HTTP to HTTPS"
          description="Responds to plain HTTP requests with a redirect; requires a certificate"
          data={[
            { value: "no", label: "No" },
            { value: "308", label: "Yes, and keep the method (308)" },
            { value: "301", label: "Yes, for old clients (301)" },
          ]}
          allowDeselect={false}
          value={https_redirect === false ? "no" : https_redirect === 301 ? "301" : "308"}
          onChange={(next) =>
            form.setFieldValue("https_redirect", next === "no" ? false : next === "301" ? 301 : 308)
          }
        />
        <Switch
          label="Strip the path"
          description="With the path /shop, a request for /shop/cart is forwarded as /cart"
          {...form.getInputProps("strip_path", { type: "checkbox" })}
        />
        <TextInput
          label="Replace the prefix"
          description="With the path /shop and /store here, a request for /shop/cart is forwarded as /store/cart"
          placeholder="/store"
          {...form.getInputProps("prefix_rewrite")}
          value={form.values.prefix_rewrite ?? ""}
        />
        <Switch
          label="Rewrite the path"
          description="With a regular expression, applied after the prefix"
          checked={path_rewrite !== null}
          onChange={(event) =>
            form.setFieldValue(
              "path_rewrite",
              event.currentTarget.checked ? { regex: "", to: "" } : null,
            )
          }
        />
        {path_rewrite !== null && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="Pattern"
              placeholder="^/old/(.*)$"
              {...form.getInputProps("path_rewrite.regex")}
            />
            <TextInput
              label="Replacement"
              description="$1 to $9 are the capture groups"
              placeholder="/new/$1"
              {...form.getInputProps("path_rewrite.to")}
            />
          </SimpleGrid>
        )}
        <Select
          label="Host header"
          data={[
            { value: "service", label: "Default of the service" },
            { value: "client", label: "Host of the client's request" },
            { value: "target", label: "Host of the target" },
          ]}
          allowDeselect={false}
          value={preserve_host === null ? "service" : preserve_host ? "client" : "target"}
          onChange={(next) =>
            form.setFieldValue("preserve_host", next === "service" ? null : next === "client")
          }
        />
        <Switch
          label="WebSocket"
          description="Allows upgrades to WebSocket, as chats and dashboards use"
          {...form.getInputProps("websocket", { type: "checkbox" })}
        />
        <Switch
          label="Exact responses"
          description="Downloads keep their Content-Length, so that clients show progress and can resume, and trailers and 103 arrive. On listeners with both engines, all requests for these host names then use the full engine, at about 5 times the processor time for a small HTTP/2 request. No effect on other listeners"
          checked={form.values.exact_responses === "on"}
          onChange={(event) =>
            form.setFieldValue("exact_responses", event.currentTarget.checked ? "on" : "off")
          }
        />
      </Stack>
    </Section>
  );
}

const TIMEOUTS = [
  ["connect_timeout", "Connect"],
  ["response_timeout", "First byte of the response"],
  ["read_timeout", "Between two reads of the response"],
  ["write_timeout", "Between two writes of the request"],
  ["request_timeout", "Whole request"],
] as const;

export function LimitFields({ form }: RouteFieldsProps) {
  const { timeouts, retries, body_min_rate: rate } = form.values;
  const overridden = Object.values(timeouts).filter((value) => value !== null).length;
  const timeoutText =
    overridden === 0 ? "Timeouts of the service" : `${overridden} of 5 timeouts overridden`;
  const retryText =
    retries === null ? "retries of the service." : `retries overridden: ${retrySummary(retries)}`;
  return (
    <FoldedSection
      title="Timeouts and retries"
      text="Overrides of the service's settings."
      summary={`${timeoutText}; ${retryText}`}
      isOpenAtFirst={overridden > 0 || retries !== null || rate !== null}
      fields={["timeouts", "body_min_rate", "retries"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {TIMEOUTS.map(([name, label]) => (
          <NumberField
            key={name}
            label={label}
            placeholder="as the service"
            suffix=" ms"
            {...form.getInputProps(`timeouts.${name}`)}
          />
        ))}
        <NumberField
          label="Minimum request body rate"
          placeholder="as the listener"
          suffix=" bytes per second"
          {...form.getInputProps("body_min_rate")}
        />
      </SimpleGrid>
      <Switch
        label="Override retries"
        description="Replaces the retry settings of the service"
        checked={retries !== null}
        onChange={(event) =>
          form.setFieldValue("retries", event.currentTarget.checked ? { ...defaultRetries } : null)
        }
      />
      {retries !== null && <RetryFields input={(name) => form.getInputProps(`retries.${name}`)} />}
    </FoldedSection>
  );
}

export function MaintenanceFields({ form }: RouteFieldsProps) {
  const { maintenance } = form.values;
  return (
    <FoldedSection
      title="Maintenance"
      text="Clients get a maintenance page instead of the application."
      summary={maintenance === null ? "Off." : "On: clients get status 503."}
      isOpenAtFirst={maintenance !== null}
      fields={["maintenance"]}
      errors={form.errors}
    >
      <Switch
        label="Respond with the maintenance page"
        checked={maintenance !== null}
        onChange={(event) =>
          form.setFieldValue(
            "maintenance",
            event.currentTarget.checked ? { retry_after: 300, html: "", bypass_cidrs: [] } : null,
          )
        }
      />
      {maintenance !== null && (
        <>
          <NumberField
            label="Retry-After"
            description="Value of the Retry-After header, in seconds"
            suffix=" s"
            empty={0}
            {...form.getInputProps("maintenance.retry_after")}
          />
          <ListField
            label="Exempt networks"
            description="Such as your overridden, to test the application"
            placeholder="192.168.0.0/16"
            {...form.getInputProps("maintenance.bypass_cidrs")}
          />
          <Textarea
            label="Page"
            description="HTML; empty: the built-in one"
            autosize
            minRows={2}
            maxRows={12}
            {...form.getInputProps("maintenance.html")}
          />
        </>
      )}
    </FoldedSection>
  );
}
