// User-Agent names of vulnerability scanners; a list, no logic.

/** Only names that always mean a scanner: curl, Go and Python are common in legitimate clients. */
export const scanners: readonly string[] = [
  // Scanners of web applications
  "acunetix",
  "AppScan",
  "arachni",
  "Burp Suite",
  "Detectify",
  "jaeles",
  "Netsparker",
  "Nessus",
  "Nikto",
  "Nuclei",
  "OpenVAS",
  "Qualys",
  "skipfish",
  "sqlmap",
  "w3af",
  "Wapiti",
  "WPScan",
  "OWASP ZAP",
  // Guessing of paths, names and parameters
  "DirBuster",
  "dirsearch",
  "feroxbuster",
  "ffuf",
  "Fuzz Faster U Fool",
  "gobuster",
  "wfuzz",
  // Sweeps of the whole network
  "CensysInspect",
  "Expanse, a Palo Alto Networks company",
  "l9explore",
  "l9tcpid",
  "masscan",
  "Nmap Scripting Engine",
  "zgrab",
  "ZmEu",
  // Command injection by way of the name itself
  "${jndi:",
  "() {",
];
