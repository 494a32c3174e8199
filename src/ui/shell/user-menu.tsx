// The user menu: account, color scheme, sign-out; knows no page.
import { ActionIcon, Menu, Text, useMantineColorScheme } from "@mantine/core";
import {
  IconBook,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { useConnection } from "../api/connection-context.ts";
import { notifyError } from "../api/changes.tsx";
import type { Schemas } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";

const schemes = [
  { value: "light", label: "Light", icon: IconSun },
  { value: "dark", label: "Dark", icon: IconMoon },
  { value: "auto", label: "System", icon: IconDeviceDesktop },
] as const;

const schemeOf = (value: string) => schemes.find((each) => each.value === value)?.value ?? "auto";

export function UserMenu({ me }: { readonly me: Schemas["Me"] }) {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const connection = useConnection();
  const client = useQueryClient();
  const signOut = async () => {
    try {
      await connection.send("/auth/logout", { method: "POST", waitsForSignIn: false });
    } catch (error) {
      return notifyError(error);
    }
    // No cached data may remain for the next user of the browser.
    sessionStorage.clear();
    client.clear();
    location.assign("/");
  };
  return (
    <Menu position="bottom-end" width={230}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Your account and colors">
          <IconUserCircle size={22} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" truncate>
            {me.user?.name ?? "No users yet"}
          </Text>
          <Text size="xs" c="dimmed" truncate>
            {me.user === null ? "All clients have the role admin" : `${me.user.email} · ${me.role}`}
          </Text>
        </Menu.Label>
        {me.user !== null && (
          <Menu.Item
            leftSection={<IconUserCircle size={16} />}
            component={Link}
            href={pagePath("account")}
          >
            Your account
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Label>Colors</Menu.Label>
        <Menu.RadioGroup value={colorScheme} onChange={(value) => setColorScheme(schemeOf(value))}>
          {schemes.map(({ value, label, icon: Icon }) => (
            <Menu.RadioItem
              key={value}
              value={value}
              rightSection={<Icon size={16} aria-hidden="true" />}
              closeMenuOnClick
            >
              {label}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item leftSection={<IconBook size={16} />} component="a" href="/docs" target="_blank">
          API reference
        </Menu.Item>
        {me.method === "session" && (
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={signOut}>
            Sign out
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
