// THE table of pages: path, title, least role, and module.
import {
  IconApps,
  IconArrowsSplit2,
  IconBell,
  IconBuildingBank,
  IconCertificate,
  IconDashboard,
  IconDatabaseExport,
  IconFingerprint,
  IconHistory,
  IconKey,
  IconListDetails,
  IconLock,
  IconPlug,
  IconPlugConnected,
  IconRadar2,
  IconReportSearch,
  IconRoute,
  IconServer,
  IconSettings,
  IconShieldCheck,
  IconTopologyRing,
  IconUser,
  IconUserCircle,
  IconUsers,
  IconWorldWww,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import type { Role } from "./api/resources.ts";

/** The props of a page, from `/ui/services/ID/PART`. Without an id it shows a list; the id `new` means a form that creates. */
export interface PageProps {
  readonly id: string | null;
  readonly part: string | null;
}

export interface PageEntry {
  /** Below `/ui/`, after the title. */
  readonly path: string;
  /** A path that it had before, which leads to it. */
  readonly former?: string;
  readonly title: string;
  readonly group: "" | "Traffic" | "Security" | "Observe" | "Settings";
  readonly icon: ComponentType<{ size?: number; stroke?: number }>;
  /** Least role that may open it. */
  readonly role: Role;
  /** False: linked elsewhere, such as in the user menu. Default: listed in the navigation, or only there in a fleet. */
  readonly isListed?: false | "in a fleet";
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
}

export const pages: readonly PageEntry[] = [
  {
    path: "dashboard",
    title: "Dashboard",
    group: "",
    icon: IconDashboard,
    role: "viewer",
    load: () => import("./pages/dashboard/dashboard-page.tsx"),
  },
  {
    path: "applications",
    title: "Applications",
    group: "",
    icon: IconApps,
    role: "viewer",
    load: () => import("./pages/applications/applications-page.tsx"),
  },
  {
    path: "discovered",
    title: "Discovered",
    group: "",
    icon: IconRadar2,
    role: "viewer",
    load: () => import("./pages/discovered/discovered-page.tsx"),
  },
  {
    path: "services",
    title: "Services",
    group: "Traffic",
    icon: IconServer,
    role: "viewer",
    load: () => import("./pages/services/services-page.tsx"),
  },
  {
    path: "routes",
    title: "Routes",
    group: "Traffic",
    icon: IconRoute,
    role: "viewer",
    load: () => import("./pages/routes/routes-page.tsx"),
  },
  {
    path: "stream-routes",
    title: "Stream routes",
    group: "Traffic",
    icon: IconArrowsSplit2,
    role: "viewer",
    load: () => import("./pages/stream-routes/stream-routes-page.tsx"),
  },
  {
    path: "plugins",
    title: "Plugins",
    group: "Traffic",
    icon: IconPlug,
    role: "viewer",
    load: () => import("./pages/plugins/plugins-page.tsx"),
  },
  {
    path: "consumers",
    title: "Consumers",
    group: "Traffic",
    icon: IconUser,
    role: "viewer",
    load: () => import("./pages/consumers/consumers-page.tsx"),
  },
  {
    path: "certificates",
    title: "Certificates",
    group: "Security",
    icon: IconCertificate,
    role: "viewer",
    load: () => import("./pages/certificates/certificates-page.tsx"),
  },
  {
    path: "local-ca",
    title: "Local CA",
    group: "Security",
    icon: IconShieldCheck,
    role: "viewer",
    isListed: false,
    load: () => import("./pages/local-ca/local-ca-page.tsx"),
  },
  {
    path: "acme-accounts",
    title: "ACME accounts",
    group: "Security",
    icon: IconBuildingBank,
    role: "viewer",
    load: () => import("./pages/acme-accounts/acme-accounts-page.tsx"),
  },
  {
    path: "dns-providers",
    title: "DNS providers",
    group: "Security",
    icon: IconWorldWww,
    role: "viewer",
    load: () => import("./pages/dns-providers/dns-providers-page.tsx"),
  },
  {
    path: "requests",
    title: "Requests",
    group: "Observe",
    icon: IconListDetails,
    role: "viewer",
    load: () => import("./pages/requests/requests-page.tsx"),
  },
  {
    path: "alerts",
    title: "Alerts",
    group: "Observe",
    icon: IconBell,
    role: "viewer",
    load: () => import("./pages/alerts/alerts-page.tsx"),
  },
  {
    path: "listeners",
    title: "Listeners",
    group: "Settings",
    icon: IconPlugConnected,
    role: "viewer",
    load: () => import("./pages/listeners/listeners-page.tsx"),
  },
  {
    path: "fleet",
    former: "nodes",
    title: "Fleet",
    group: "Settings",
    icon: IconTopologyRing,
    role: "viewer",
    isListed: "in a fleet",
    load: () => import("./pages/fleet/fleet-page.tsx"),
  },
  {
    path: "users",
    title: "Users",
    group: "Settings",
    icon: IconUsers,
    role: "admin",
    load: () => import("./pages/users/users-page.tsx"),
  },
  {
    path: "single-sign-on",
    title: "Single sign-on",
    group: "Settings",
    icon: IconFingerprint,
    role: "admin",
    load: () => import("./pages/sso/sso-page.tsx"),
  },
  {
    path: "tokens",
    title: "Tokens",
    group: "Settings",
    icon: IconKey,
    role: "admin",
    load: () => import("./pages/tokens/tokens-page.tsx"),
  },
  {
    path: "secrets",
    title: "Secrets",
    group: "Settings",
    icon: IconLock,
    role: "admin",
    load: () => import("./pages/secrets/secrets-page.tsx"),
  },
  {
    path: "gateway-settings",
    title: "Gateway settings",
    group: "Settings",
    icon: IconSettings,
    role: "viewer",
    load: () => import("./pages/settings/settings-page.tsx"),
  },
  {
    path: "export-import",
    title: "Export & import",
    group: "Settings",
    icon: IconDatabaseExport,
    role: "viewer",
    load: () => import("./pages/transfer/transfer-page.tsx"),
  },
  {
    path: "revisions",
    title: "Revisions",
    group: "Settings",
    icon: IconHistory,
    role: "viewer",
    load: () => import("./pages/revisions/revisions-page.tsx"),
  },
  {
    path: "audit-log",
    title: "Audit log",
    group: "Settings",
    icon: IconReportSearch,
    role: "admin",
    load: () => import("./pages/audit/audit-page.tsx"),
  },
  {
    path: "account",
    title: "Your account",
    group: "Settings",
    isListed: false,
    icon: IconUserCircle,
    role: "viewer",
    load: () => import("./pages/account/account-page.tsx"),
  },
];
