"""Two builds side by side in one allocation: is the one slower than the other, by how much, and where?"""
