"""A browser with a cookie jar an origin, that follows redirects between Muster and a provider."""
import urllib.parse

import httpx


class Browser:
    def __init__(self, server, authority_file):
        self.server = server
        self.client = httpx.Client(verify=authority_file, timeout=30, trust_env=False, follow_redirects=False)
        self.jars = {}

    def close(self):
        self.client.close()

    def request(self, method, url, **options):
        """One request with the origin's cookies; what it sets is kept."""
        parts = urllib.parse.urlsplit(url)
        jar = self.jars.setdefault(parts.netloc, {})
        headers = {"Accept": "text/html", **options.pop("headers", {})}
        if jar:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in jar.items())
        self.client.cookies.clear()
        answer = self.client.request(method, url, headers=headers, **options)
        for line in answer.headers.get_list("set-cookie"):
            pair, *attributes = [part.strip() for part in line.split(";")]
            name, _, value = pair.partition("=")
            lowered = [attribute.lower() for attribute in attributes]
            gone = value == "" or "max-age=0" in lowered or any(a.startswith("expires=thu, 01 jan 1970") for a in lowered)
            jar.pop(name, None) if gone else jar.__setitem__(name, value)
        return answer

    def follow(self, url):
        """Until there is no redirect, or one to a page of the console."""
        for _ in range(15):
            answer = self.request("GET", url)
            if answer.status_code not in (301, 302, 303, 307):
                return answer
            url = urllib.parse.urljoin(url, answer.headers["location"])
            if url.startswith(self.server.url("/")) and not url.startswith(self.server.url("/auth/")):
                return answer
        raise AssertionError(f"too many redirects, the last to {url}")

    def sign_in(self, issuer, return_to="/"):
        """Where one lands."""
        query = urllib.parse.urlencode({"return_to": return_to})
        return self.follow(self.server.url(f"/auth/sign-in/{issuer}?{query}")).headers["location"]

    def api(self, method, path, json=None):
        return self.request(method, self.server.url(path), json=json,
                            headers={"Accept": "application/json", "Sec-Fetch-Site": "same-origin"})

    def me(self):
        return self.api("GET", "/api/v1/me")
